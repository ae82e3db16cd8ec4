package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ration-go/ration/store"
)

// A got is what the script has answered to one booking.
type got struct {
	common *store.Booking // what it has in common with others
	slot   time.Time
	entry  string
	before uint64 // what names the entry, if entry is empty
}

// booking is the answer to a request. Each caller makes its own, when it has woken.
func (g got) booking(id store.BookingID, budget string, cost int) store.Booking {
	b := *g.common
	b.ID, b.Budget, b.Cost, b.Slot, b.Entry = id, budget, cost, g.slot, g.entry
	if b.Booked && b.Entry == "" {
		var entry [15]byte
		copy(entry[:], "\x00L0") // of no lane, in the first run
		binary.BigEndian.PutUint64(entry[7:], uint64(cost))
		binary.BigEndian.PutUint64(entry[2:], g.before&(1<<56-1)|'0'<<56)
		b.Entry, b.Total = string(entry[:]), int64(g.before)+int64(cost)
	} else if b.Booked {
		b.Total = totalOf(b.Entry)
	}
	return b
}

// totalOf returns the units that were booked of an account up to the end of a booking.
// The entry of one that is alone in the first run tells: its lane, a zero, a kind, the
// run, and in 7 and 5 bytes the units before it and its own. Zero: it does not tell.
func totalOf(entry string) int64 {
	const length = 15
	if len(entry) != length || entry[0] != 0 || entry[2] != '0' {
		return 0
	}
	var before, cost [8]byte
	copy(before[1:], entry[3:10])
	copy(cost[3:], entry[10:])
	return int64(binary.BigEndian.Uint64(before[:]) + binary.BigEndian.Uint64(cost[:]))
}

// A bookReply is what the script answered: to some bookings after the other, each as
// next reads it.
type bookReply struct {
	now     time.Time
	version int64
	stepped time.Duration
	used    int
	other   *store.Booking // the same for all, in place of records
	records wire
	err     error          // once next has found none
	last    *store.Booking // what was in common last
}

// A bookRecord is the answer to some seats, one after the other.
type bookRecord struct {
	kind    byte
	count   int
	slot    time.Time
	slots   wire // of each, if it is not the same
	before  uint64
	account string
	ruled   string
	entry   string
}

func parseBookReply(reply any) (bookReply, error) {
	text, ok := reply.(string)
	if !ok {
		list := newReply(reply)
		if !list.is("lost", 3) && !list.is("ahead", 3) {
			return bookReply{}, list.bad("book")
		}
		other := &store.Booking{Lost: list.parts[0] == "lost", Ahead: list.parts[0] == "ahead", Now: list.instant(1), Version: list.number(2)}
		if list.err != nil {
			return bookReply{}, list.bad("book")
		}
		return bookReply{other: other}, nil
	}
	r := wire(text)
	answer := bookReply{now: r.instant(), version: int64(r.number(8))}
	if stepped := int64(r.number(8)); stepped != 0 {
		answer.stepped = time.Duration(stepped-noBound) * time.Microsecond
	}
	answer.used = int(r.number(8))
	if answer.records = r; len(r) == 0 {
		return bookReply{}, badBookReply(errors.New("it has no answer"))
	}
	return answer, nil
}

// next reads a record, if there is another. Of one that cannot be read there is err.
func (a *bookReply) next(record *bookRecord) bool {
	r := &a.records
	if len(*r) == 0 || a.err != nil {
		return false
	}
	*record = bookRecord{kind: r.text(1)[0], count: int(r.number(2))}
	if record.kind == 'S' {
		record.before = r.number(7)
		record.account = r.text(int(r.number(2)))
		record.slots = wire(r.text(8 * record.count))
	} else {
		record.slot, record.before = r.instant(), r.number(7)
		account, ruled, entry := int(r.number(2)), int(r.number(2)), int(r.number(2))
		record.account, record.ruled, record.entry = r.text(account), r.text(ruled), r.text(entry)
	}
	if *r == torn || record.count < 1 {
		a.err = badBookReply(errors.New("it is too short"))
		return false
	}
	return true
}

// slotOf returns the slot of one of the record's seats.
func (record *bookRecord) slotOf(seat int) time.Time {
	if record.kind != 'S' {
		return record.slot
	}
	slot := record.slots[8*seat:]
	return slot.instant()
}

// common is what the answers to a record's seats have in common.
func (a *bookReply) common(record *bookRecord, accounts *store.Accounts) (*store.Booking, error) {
	booked := false
	switch record.kind {
	case 'C', 'D':
		return nil, nil // an error for each
	case 'B', 'S':
		booked = true
	case 'L':
	default:
		return nil, badBookReply(fmt.Errorf("it has a %q", record.kind))
	}
	at := accounts.Index(record.account)
	if at < 0 {
		return nil, badBookReply(fmt.Errorf("account %q was not asked for", store.Clip(record.account)))
	}
	id := accounts.List[at].ID
	if a.last != nil && record.ruled == "" && a.last.Booked == booked && a.last.Account == id && a.last.Effective.Limits == nil {
		return a.last, nil
	}
	b := &store.Booking{Booked: booked, Account: id, Now: a.now, Stepped: a.stepped, Version: a.version}
	if b.Booked {
		b.Used = a.used
	}
	if record.ruled != "" {
		var err error
		if b.Effective, err = store.ParseEffectiveLimits(record.ruled); err != nil {
			return nil, badBookReply(err)
		}
	}
	a.last = b
	return b, nil
}

func badBookReply(err error) error {
	return &store.StoreError{Op: "book", Permanent: true, Err: fmt.Errorf("the reply is not one of ration's scripts: %w", err)}
}

// wire is what is left to be read of an answer in bytes. Reading beyond its end
// makes it torn.
type wire string

const torn wire = "\x00"

func (w *wire) text(n int) string {
	if n > len(*w) {
		*w = torn
		return string(make([]byte, min(n, 1)))
	}
	s := string((*w)[:n])
	*w = (*w)[n:]
	return s
}

func (w *wire) number(n int) (number uint64) {
	for _, b := range []byte(w.text(n)) {
		number = number<<8 | uint64(b)
	}
	return number
}

func (w *wire) instant() time.Time { return time.UnixMicro(int64(w.number(8))) }
