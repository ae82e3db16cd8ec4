package external

import (
	"context"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

// Correct implements [store.Store].
func (s *Store) Correct(ctx context.Context, r store.CorrectRequest) (store.Booking, error) {
	b, now, err := s.begin(ctx, r.Validate(), r.Booking.Budget, r.Now)
	if err != nil {
		return store.Booking{}, err
	}
	defer s.mu.Unlock()
	if !isEntry(r.Booking) {
		return store.Booking{}, store.ErrOtherStore
	}
	one := b.bookings[r.Booking.ID]
	if one == nil {
		queue, _, _ := strings.Cut(r.Booking.Entry, " ")
		one = &booking{id: r.Booking.ID, account: r.Booking.Account, slot: r.Booking.Slot.UnixMicro(), queue: queue}
		one.charged = []*account{b.account(one.account)}
		b.bookings[one.id] = one
	}
	slot := one.slot
	if !r.Slot.IsZero() {
		slot = r.Slot.UnixMicro()
	}
	one.corrected = true

	units := r.Units
	var charged []*account
	var meters []*booking
	beside := ""
	if i := strings.LastIndexByte(one.queue, '~'); i >= 0 {
		beside = one.queue[i+1:]
	}
	for id := range strings.SplitSeq(beside, ",") {
		unit, metered := strings.CutPrefix(id, "*")
		switch {
		case id == "":
		case metered:
			n := 0
			if len(units) > 0 {
				n, units = units[0], units[1:]
			}
			if n > 0 {
				meters = append(meters, &booking{cost: int64(n), charged: []*account{b.account(store.MeterID(one.account, unit))}})
			}
		default:
			charged = append(charged, b.account(id))
		}
	}

	freed := one.slot != slot && one.slot >= now || one.cost > int64(r.Cost)
	for i, o := range one.meters {
		freed = freed || i >= len(meters) || o.cost > meters[i].cost
	}
	all := append([]*account{b.account(one.account)}, charged...)
	one.remove()
	one.recorded = one.recorded || one.slot != slot || one.cost < int64(r.Cost)
	one.charged, one.meters, one.slot, one.cost = all, nil, slot, int64(r.Cost)
	for _, m := range meters {
		if a := m.charged[0]; a.limits != nil && slot > now-a.limits.Window {
			m.slot, m.queue, m.recorded = slot, one.queue, one.recorded
			a.total += m.cost
			m.total = a.total
			one.meters = append(one.meters, m)
			all = append(all, a)
		}
	}
	own := all[0]
	if own.limits == nil || slot <= now-own.limits.Window || one.cost == 0 {
		one.charged = []*account{new(account)} // which nobody asks for
	}
	own.total += one.cost
	one.total = own.total
	one.add()
	for _, a := range all {
		for queue, last := range a.last {
			if freed {
				a.last[queue] = min(last, now)
			}
		}
		if a.limits != nil && one.cost > 0 {
			c := charge{account: a, set: a.limits, now: now}
			for _, l := range c.set.Compiled {
				if m := c.meter(l); l.FirstUse && m.covers(one) {
					m.beginWindow(slot)
				}
			}
		}
	}
	answer := r.Booking
	answer.Cost, answer.Slot = r.Cost, time.UnixMicro(slot)
	return answer, nil
}
