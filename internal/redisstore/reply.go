package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

// A reply is what is left to read of a script's reply: numbers of 8 bytes, most
// significant byte first; names, each behind its length in 2 bytes; and the records
// of lua/book.lua. Once something could not be read, err is set and the rest is empty.
type reply struct {
	rest string
	err  error
}

var errTooShort = errors.New("it is too short")

// maxNumber is the largest number that Lua counts to exactly.
const maxNumber = 1 << 53

func newReply(answer any) reply {
	text, ok := answer.(string)
	if !ok {
		return reply{err: fmt.Errorf("a %T came where a string was expected", answer)}
	}
	return reply{rest: text}
}

// numbers reads as many numbers as fit into the slice.
func (r *reply) numbers(into []int64) {
	for i := range into {
		if len(r.rest) < 8 {
			r.fail(errTooShort)
			return
		}
		n := binary.BigEndian.Uint64([]byte(r.rest[:8]))
		if n > maxNumber {
			r.fail(fmt.Errorf("it has %q where a number was expected", r.rest[:8]))
			return
		}
		into[i], r.rest = int64(n), r.rest[8:]
	}
}

// toInt keeps a number from wrapping around in an int of 32 bits.
func toInt(n int64) int { return int(min(n, math.MaxInt)) }

// name reads a name.
func (r *reply) name() string {
	if len(r.rest) < 2 || len(r.rest) < 2+lengthAt(r.rest, 0) {
		r.fail(errTooShort)
		return ""
	}
	ends := 2 + lengthAt(r.rest, 0)
	name := r.rest[2:ends]
	r.rest = r.rest[ends:]
	return name
}

func lengthAt(text string, at int) int { return int(text[at])<<8 | int(text[at+1]) }

// A record is the result of some bookings of a batch, one after the other.
type record struct {
	kind    byte
	count   int
	slot    int64 // microseconds
	before  uint64
	account string
	limits  string // that are effective, if the request has others
	entry   string
}

// recordHead is the length of a record before its texts.
const recordHead = 24

// record reads a record.
func (r *reply) record() record {
	if len(r.rest) < recordHead {
		r.fail(errTooShort)
		return record{}
	}
	head := []byte(r.rest[:recordHead])
	account := recordHead + int(binary.BigEndian.Uint16(head[18:]))
	limits := account + int(binary.BigEndian.Uint16(head[20:]))
	entry := limits + int(binary.BigEndian.Uint16(head[22:]))
	one := record{
		kind: head[0], count: int(binary.BigEndian.Uint16(head[1:])),
		slot: int64(binary.BigEndian.Uint64(head[3:])), before: binary.BigEndian.Uint64(head[10:]) & (1<<56 - 1),
	}
	if len(r.rest) < entry || one.count < 1 {
		r.fail(errTooShort)
		return record{}
	}
	one.account, one.limits, one.entry = r.rest[recordHead:account], r.rest[account:limits], r.rest[limits:entry]
	r.rest = r.rest[entry:]
	return one
}

func (r *reply) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = ""
}

// malformed returns the error if something could not be read.
func (r *reply) malformed(op string) error {
	if r.err == nil {
		return nil
	}
	return &store.StoreError{Op: op, Permanent: true, Err: fmt.Errorf("the reply is not one of ration's scripts: %w", r.err)}
}

// end returns the error if something could not be read, or was not.
func (r *reply) end(op string) error {
	switch {
	case r.rest == "" && r.err == nil:
		return nil
	case r.rest != "":
		r.fail(fmt.Errorf("it has %q behind its end", clip(r.rest)))
	}
	return r.malformed(op)
}

// instant is a number as an instant, in microseconds since the epoch; 0 is the zero time.
func instant(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n)
}

// A result is what the script book replied to one booking.
type result struct {
	common *store.Booking // what it has in common with others; nil if there is an error
	slot   time.Time
	entry  string
	before uint64 // what names the entry, if entry is empty
}

// booking is the result as the caller gets it. Each caller makes its own, when it has
// woken.
func (r result) booking(id store.BookingID, budget string, cost int) store.Booking {
	b := *r.common
	b.ID, b.Budget, b.Cost, b.Slot, b.Entry = id, budget, cost, r.slot, r.entry
	if b.Booked && b.Entry == "" {
		entry := []byte{0, 'L', 14: 0} // of the queue without a name
		putPart(entry[1:], r.before, uint64(cost))
		b.Entry, b.Total = string(entry), int64(r.before)+int64(cost)
	} else if b.Booked {
		b.Total = totalOf(b.Entry)
	}
	return b
}

// result returns the result of one of the record's bookings. So many are before it, of that cost each.
func (one *record) result(common *store.Booking, before, cost int) result {
	r := result{common, time.UnixMicro(one.slot), one.entry, one.before + uint64(before)*uint64(cost)}
	if before > 0 && one.entry != "" {
		r.entry = entryBehind(one.entry, before)
	}
	return r
}

// An entry is a queue's name, a zero, and a part for each account that was charged: a
// letter; in 7 and 5 bytes the number of its first unit, and its units; in 1 how many
// limits have something more to know of it, and that, in 29 each.
const (
	partHead = 14
	partMore = 29
)

// partsOf returns where the parts of an entry begin; none if it is no entry.
func partsOf(entry string) (places []int) {
	at := strings.IndexByte(entry, 0) + 1
	for at > 0 && at+partHead <= len(entry) {
		places = append(places, at)
		at += partHead + partMore*int(entry[at+partHead-1])
	}
	if at != len(entry) {
		return nil
	}
	return places
}

// numbersOf returns the number of the first unit of a part, and its units.
func numbersOf(part string) (first, units uint64) {
	for i := 1; i < partHead-1; i++ {
		if i < 8 {
			first = first<<8 | uint64(part[i])
		} else {
			units = units<<8 | uint64(part[i])
		}
	}
	return first, units
}

func putPart(part []byte, first, units uint64) {
	for i := partHead - 2; i > 0; i-- {
		if i < 8 {
			part[i], first = byte(first), first>>8
		} else {
			part[i], units = byte(units), units>>8
		}
	}
}

// entryBehind returns the entry of a booking that is so many behind the first one with the same answer. Each of them is charged
// with the same units.
func entryBehind(first string, before int) string {
	entry := []byte(first)
	for _, at := range partsOf(first) {
		number, own := numbersOf(first[at:])
		putPart(entry[at:], number+own*uint64(before), own)
	}
	return string(entry)
}

// totalOf returns the units that were booked of an account up to the end of a booking,
// which the entry of one account in the queue without a name tells. Zero: unknown.
func totalOf(entry string) int64 {
	parts := partsOf(entry)
	if len(parts) != 1 || parts[0] != 1 {
		return 0
	}
	first, units := numbersOf(entry[1:])
	if first >= unbounded {
		return 0 // it was put in between others of a stream
	}
	return int64(first + units)
}

// A batchReply is the reply of the script book: what holds for all bookings, and then
// records.
type batchReply struct {
	reply
	now     time.Time
	version int64
	stepped time.Duration
	used    int
	last    *store.Booking // what the results of the last record have in common
	newest  *store.Booking // likewise, of the last record that was booked
}

// callNumber is the length of what an answer of the script book begins with: the number of
// the call that it answers, and a nonce.
const callNumber = 16

func parseBatchReply(result any) (batchReply, error) {
	answer := batchReply{reply: newReply(result)}
	var head [4]int64
	answer.rest = answer.rest[min(callNumber, len(answer.rest)):]
	answer.numbers(head[:])
	answer.now, answer.version, answer.used = time.UnixMicro(head[0]), head[1], toInt(head[3])
	if head[2] != 0 {
		answer.stepped = time.Duration(head[2]-unbounded) * time.Microsecond
	}
	if answer.rest == "" {
		answer.fail(errTooShort)
		return answer, answer.malformed("book")
	}
	return answer, nil
}

// common is what the results of a record's bookings have in common; nil if they are
// errors, or the record is malformed.
func (a *batchReply) common(one *record, accounts *store.Accounts) *store.Booking {
	switch one.kind {
	case 'B', 'L', 'W':
	case 'C', 'D':
		return nil
	case 'N':
		lost, ahead, behind := one.account == "lost", one.account == "ahead", one.account == "behind"
		if !lost && !ahead && !behind {
			a.fail(fmt.Errorf("it asks for %q again", clip(one.account)))
		}
		return &store.Booking{Lost: lost, Ahead: ahead, Behind: behind, Now: a.now, Version: a.version}
	default:
		a.fail(fmt.Errorf("it has a record %q", one.kind))
		return nil
	}
	at := accounts.Index(one.account)
	if at < 0 {
		a.fail(fmt.Errorf("account %q was not asked for", clip(one.account)))
		return nil
	}
	id, booked, retry := accounts.At(at).ID, one.kind == 'B', one.kind == 'W'
	if a.last != nil && one.limits == "" && a.last.Booked == booked && a.last.Retry == retry &&
		a.last.Account == id && a.last.Effective.Limits == nil {
		return a.last
	}
	b := &store.Booking{Booked: booked, Retry: retry, Account: id, Now: a.now, Stepped: a.stepped, Version: a.version}
	if one.limits != "" {
		var err error
		if b.Effective, err = parseCard(one.limits); err != nil {
			a.fail(err)
		}
	}
	if a.last = b; booked {
		a.newest = b
	}
	return b
}

// tellUsed tells what is used of the account that was booked last, once all records are read: the
// reply says it of no other.
func (a *batchReply) tellUsed() {
	if a.newest != nil {
		a.newest.Used = a.used
	}
}

// parseCard reads a card as the scripts keep it: its edition, and the limits as store.EncodeLimits writes them.
func parseCard(text string) (store.Card, error) {
	revision, rest, _ := strings.Cut(text, " ")
	version, set, _ := strings.Cut(rest, " ")
	n, err := strconv.Atoi(revision)
	v, other := strconv.ParseInt(version, 10, 64)
	if err != nil || other != nil {
		return store.Card{}, fmt.Errorf("%q is not an edition and limits", clip(text))
	}
	limits, err := store.ParseLimits(set)
	return store.Card{Edition: store.Edition{Revision: n, Version: v}, Limits: limits}, err
}

// encodeSet writes a set of limits with its edition, for requests of that revision.
func encodeSet(set *store.LimitSet, revision int) string {
	edition := (&store.BookRequest{Revision: revision}).EditionOf(set)
	return strconv.Itoa(edition.Revision) + " " + strconv.FormatInt(edition.Version, 10) + " " + set.Name
}

// limitsError returns the error for an account that was booked with other limits.
func limitsError(r store.BookRequest, account, theirs string) error {
	effective, err := parseCard(theirs)
	if err != nil {
		return &store.StoreError{Op: "book", Permanent: true, Err: fmt.Errorf("the account's limits in the store: %w", err)}
	}
	return store.NewLimitsError(r, account, effective)
}

// clip shortens what an error quotes.
func clip(s string) string { return s[:min(len(s), 40)] }
