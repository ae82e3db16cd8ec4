package redisstore

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A plan is what all calls of the script book for one queue have in common.
type plan struct {
	key       batchKey
	script    *redis.Script
	keys      []string
	zones     []string
	arguments []any // lua/book.lua has them; the first two are each call's own
	changes   []any // what makes the index from that of the accounts before; nil: they are not known, or too many have changed

	announced atomic.Pointer[recentlyAnnounced] // nil: none was
}

// A recentlyAnnounced is the account that was announced last, until when, and how many losses were known then.
type recentlyAnnounced struct {
	account string
	until   time.Time
	losses  int64
}

// announce reports whether an account is to be announced at an instant.
func (p *plan) announce(account string, now time.Time, losses int64) bool {
	last := p.announced.Load()
	if last != nil && last.account == account && now.Before(last.until) && last.losses == losses {
		return false
	}
	p.announced.Store(&recentlyAnnounced{account, now.Add(announceEvery), losses})
	return true
}

// firstZone is the place of the first zone among the arguments.
const firstZone = 3

func newPlan(key batchKey) *plan {
	a, zones, sets := key.accounts, key.accounts.Zones(), key.accounts.LimitSets()
	args := make([]any, 2, 6+len(sets)+len(zones)+len(a.Meters())+len(a.Shared()))
	args = append(args, rules(key))
	args = append(args, make([]any, len(zones))...) // which change with the time
	for i := range sets[1:] {
		args = append(args, encodeSet(&sets[i+1], key.revision))
	}
	for i, meter := range a.Meters() {
		args = append(args, strconv.Itoa(a.MeterSetOf(i)+1)+":*"+meter.Unit)
	}
	for i, account := range a.Shared() {
		args = append(args, strconv.Itoa(a.SharedSetOf(i)+1)+":"+account.ID)
	}
	if a.Len() == 1 {
		args = append(args, a.At(0).ID)
	}
	return &plan{key: key, script: bookScript.with(a.Algorithms()), keys: []string{BaseKey(key.budget)}, zones: zones, arguments: args}
}

// rules tells what a booking goes by, in one argument: lua/book.lua names its parts.
func rules(key batchKey) string {
	a, index, excluded := key.accounts, "", ""
	if a.Len() > 1 {
		index, excluded = indexName(a, key.units), key.excluded
	}
	return fmt.Sprintf("%s %s %d %d %d %d %s %s", index, excluded, len(a.LimitSets()), len(a.Zones()), len(a.Meters())+len(a.Shared()),
		key.reserve, key.scopes, encodeSet(&a.LimitSets()[0], key.revision))
}

// at returns the arguments at an instant. The first two are left to be set.
func (p *plan) at(now time.Time) []any {
	args := slices.Clone(p.arguments)
	for i, zone := range p.zones {
		args[firstZone+i] = limit.EncodeZone(zone, now)
	}
	return args
}

// unbounded is a longest wait that no slot is beyond. Every slot is beyond the one behind it.
const unbounded = 1 << 52

func encodeWait(longest time.Duration) uint64 {
	switch longest {
	case store.Forever:
		return unbounded
	case store.Never:
		return unbounded + 1
	}
	return uint64(min(longest.Microseconds(), unbounded-1))
}

// encode encodes what the callers know of clocks, the latest of each, and the bookings, of
// which those of the same cost and units that stand together and wait equally long are one part.
func (b *batch) encode() string {
	text := b.clocks()
	for calls := b.calls; len(calls) > 0; {
		cost, units, least, same, n := calls[0].request.Cost, calls[0].request.Units, calls[0].request.MaxWait, true, 0
		for ; n < len(calls) && calls[n].request.Cost == cost && slices.Equal(calls[n].request.Units, units); n++ {
			longest := calls[n].request.MaxWait
			same = same && longest == least
			least = min(least, longest)
		}
		kind := byte('U')
		if !same {
			kind = 'D'
		}
		text = append(text, kind, byte(n>>8), byte(n))
		text = binary.BigEndian.AppendUint16(text, uint16(int64(cost)>>32))
		text = binary.BigEndian.AppendUint32(text, uint32(cost))
		text = binary.BigEndian.AppendUint64(text, encodeWait(least))
		for _, n := range units {
			text = binary.BigEndian.AppendUint16(text, uint16(int64(n)>>32))
			text = binary.BigEndian.AppendUint32(text, uint32(n))
		}
		for i := 0; i < n && !same; i++ {
			text = binary.BigEndian.AppendUint64(text, encodeWait(calls[i].request.MaxWait))
		}
		calls = calls[n:]
	}
	return string(text)
}

// encodeInstead encodes who asks, and the bookings in place of which those of the batch are.
func (b *batch) encodeInstead() string {
	text := []byte(b.calls[0].request.Instead.By.String())
	for _, p := range b.calls {
		one := &p.request.Instead.Booking
		text = binary.BigEndian.AppendUint64(text, uint64(one.Slot.UnixMicro()))
		text = append(append(text, one.ID.String()...), p.request.Instead.Holder.String()...)
		for _, name := range [...]string{one.Account, one.Entry} {
			text = append(binary.BigEndian.AppendUint16(text, uint16(len(name))), name...)
		}
	}
	return string(text)
}

// clocks encodes the instants of a batch that is sent now for the first time. A caller reckons what the store's clock stands at when
// it asks, and its booking may have waited for others since.
func (b *batch) clocks() []byte {
	first := &b.calls[0].request
	expect, last := first.Expect, first.Last
	if came := b.calls[0].came; !expect.IsZero() && !came.IsZero() {
		expect = expect.Add(time.Since(came))
	}
	for _, p := range b.calls[1:] {
		if p.request.Last.After(last) {
			last = p.request.Last
		}
	}
	text := make([]byte, 0, 56+17) // most often there is one part
	for _, t := range [...]time.Time{first.Now, expect, last, first.Recovered} {
		n := uint64(0)
		if !t.IsZero() {
			n = uint64(t.UnixMicro())
		}
		text = binary.BigEndian.AppendUint64(text, n)
	}
	text = binary.BigEndian.AppendUint64(text, uint64(first.Ahead.Microseconds()))
	text = binary.BigEndian.AppendUint64(text, uint64(first.KnownCard))
	return binary.BigEndian.AppendUint64(text, uint64(first.AskLead().Microseconds()))
}

// memberOf names the i-th account in an index: its set of limits, from 1, and its ID.
func memberOf(a *store.Accounts, i int) string {
	return strconv.Itoa(a.SetOf(i)+1) + ":" + a.At(i).ID
}

// setArguments adds the sets of limits.
func setArguments(a *store.Accounts, args []any) []any {
	args = append(args, len(a.LimitSets()))
	for _, set := range a.LimitSets() {
		args = append(args, set.Name)
	}
	return args
}

// zoneArguments adds the zones, as they are about now.
func zoneArguments(args []any, zones []string, now time.Time) []any {
	args = append(args, len(zones))
	for _, name := range zones {
		args = append(args, limit.EncodeZone(name, now))
	}
	return args
}

// micros encodes an instant: "" is the server's clock.
func micros(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}
