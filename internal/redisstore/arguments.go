package redisstore

import (
	"encoding/binary"
	"slices"
	"strconv"
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
	arguments []any // lua/book.lua has them; the first three are each call's own

	// The account that was announced last, and when it may be again. One script of a plan is
	// evaluated at a time.
	announced     string
	announceAgain time.Time
}

// firstZone is the place of the first zone among the arguments.
const firstZone = 7

func newPlan(key batchKey) *plan {
	a, zones := key.accounts, key.accounts.Zones()
	args := make([]any, 3, 12+len(a.LimitSets())+len(zones))
	index := a.Digest()
	if key.excluded != "" && index != "" {
		index += " " + key.excluded
	}
	args = append(args, index, key.scopes, key.revision, len(zones))
	args = append(args, make([]any, len(zones))...) // which change with the time
	args = append(setArguments(a, args), len(a.Shared()))
	for i, account := range a.Shared() {
		args = append(args, strconv.Itoa(a.SharedSetOf(i)+1)+":"+account.ID)
	}
	if a.Len() == 1 {
		args = append(args, memberOf(a, 0))
	}
	return &plan{key: key, script: bookScript.with(a.Algorithms()), keys: []string{baseKey(key.budget)}, zones: zones, arguments: args}
}

// with returns the arguments for some bookings. Its first two are left to be set.
func (p *plan) with(bookings string, now time.Time) []any {
	args := slices.Clone(p.arguments)
	args[2] = bookings
	for i, zone := range p.zones {
		args[firstZone+i] = limit.EncodeZone(zone, now)
	}
	return args
}

// unbounded is a longest wait that no slot is beyond.
const unbounded = 1 << 52

func encodeWait(longest time.Duration) uint64 {
	if longest == store.Forever {
		return unbounded
	}
	return uint64(min(longest.Microseconds(), unbounded-1))
}

// bookings encodes the bookings. Those of one cost that stand together and wait equally
// long are one part.
func (b *batch) bookings() string {
	var text []byte
	for calls := b.calls; len(calls) > 0; {
		cost, least, same, n := calls[0].request.Cost, calls[0].request.MaxWait, true, 0
		for ; n < len(calls) && calls[n].request.Cost == cost; n++ {
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
		for i := 0; i < n && !same; i++ {
			text = binary.BigEndian.AppendUint64(text, encodeWait(calls[i].request.MaxWait))
		}
		calls = calls[n:]
	}
	return string(text)
}

// clocks encodes what the callers know of clocks, the latest of each, and the share of
// the limits that they leave to others.
func (b *batch) clocks() string {
	first := &b.calls[0].request
	expect, last := first.Expect, first.Last
	for _, p := range b.calls[1:] {
		if p.request.Expect.After(expect) {
			expect = p.request.Expect
		}
		if p.request.Last.After(last) {
			last = p.request.Last
		}
	}
	text := make([]byte, 0, 48)
	for _, t := range [...]time.Time{first.Now, expect, last, first.Recovered} {
		n := uint64(0)
		if !t.IsZero() {
			n = uint64(t.UnixMicro())
		}
		text = binary.BigEndian.AppendUint64(text, n)
	}
	text = binary.BigEndian.AppendUint64(text, uint64(first.Ahead.Microseconds()))
	text = binary.BigEndian.AppendUint64(text, uint64(first.Reserve))
	return string(text)
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
func zoneArguments(a *store.Accounts, args []any, now time.Time) []any {
	args = append(args, len(a.Zones()))
	for _, name := range a.Zones() {
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
