package algorithms_test

import (
	"slices"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// A subCall is a booking in the model of sub-windows.
type subCall struct {
	slot int64
	cost int
}

// A subModel is one account with one limit, counted in sub-windows by going
// through all calls.
type subModel struct {
	limit ration.Limit
	calls []*subCall    // in the order of booking
	last  map[int]int64 // by Reserve
}

func (m *subModel) length() int64 { return m.limit.Resolution.Microseconds() }

func (m *subModel) window() int64 { return (m.limit.Window + m.limit.Margin).Microseconds() }

// counts tells whether a call's sub-window has an instant in (end-window, end].
func (m *subModel) counts(c *subCall, end int64) bool {
	index := c.slot / m.length()
	return index*m.length() <= end && (index+1)*m.length()-1 > end-m.window()
}

// lastAlike returns the last instant of an instant's sub-window whose window begins
// with the same sub-window as its own.
func (m *subModel) lastAlike(instant int64) int64 {
	ends := (instant/m.length()+1)*m.length() - 1
	for next := instant + 1; next <= min(ends, instant+m.length()); next++ {
		if (next-m.window()+1)%m.length() == 0 {
			return next - 1
		}
	}
	return ends
}

// fits tells whether neither the window that ends at the slot, nor one that ends
// with a later call, holds more than room.
func (m *subModel) fits(slot int64, room int) bool {
	ends := []int64{slot}
	for _, c := range m.calls {
		if c.slot > slot {
			ends = append(ends, c.slot)
		}
	}
	for _, end := range ends {
		end = m.lastAlike(end)
		units := 0
		for _, c := range m.calls {
			if c.slot <= end && m.counts(c, end) {
				units += c.cost
			}
		}
		if m.counts(&subCall{slot: slot}, end) && units > room {
			return false
		}
	}
	return true
}

// most returns how many units a booking may use that keeps so much.
func (m *subModel) most(cost, keep int) int {
	if keep == 0 {
		return m.limit.Max
	}
	return max(cost, m.limit.Max*(1000-keep)/1000)
}

// offer returns the slot of the next booking.
func (m *subModel) offer(now int64, cost, keep int) int64 {
	// What fits changes where a sub-window begins, and where it leaves.
	from := max(now, m.last[keep])
	instants := []int64{from}
	for _, c := range m.calls {
		begins := c.slot - c.slot%m.length()
		instants = append(instants, begins, m.lastAlike(begins)+1, begins+m.length()-1+m.window())
	}
	slices.Sort(instants)
	for _, slot := range instants {
		if slot >= from && m.fits(slot, m.most(cost, keep)-cost) {
			return slot
		}
	}
	panic("nothing ever fits")
}

func (m *subModel) add(slot int64, cost, keep int) *subCall {
	c := &subCall{slot: slot, cost: cost}
	m.calls = append(m.calls, c)
	m.last[keep] = max(m.last[keep], slot)
	return c
}

// cancel removes a call. If it had not left the next ones may leave before those that wait.
func (m *subModel) cancel(now int64, c *subCall) {
	m.calls = slices.DeleteFunc(m.calls, func(o *subCall) bool { return o == c })
	if c.slot < now {
		return
	}
	for keep, last := range m.last {
		m.last[keep] = min(last, now)
	}
}

func (m *subModel) usage(now int64) (used int, freeAt int64) {
	var leaves []int64
	for _, c := range m.calls {
		if leaving := (c.slot/m.length()+1)*m.length() - 1 + m.window(); leaving > now {
			used += c.cost
			leaves = append(leaves, leaving)
		}
	}
	if used == 0 {
		return 0, 0
	}
	slices.Sort(leaves)
	for _, at := range leaves {
		left := 0
		for _, c := range m.calls {
			if (c.slot/m.length()+1)*m.length()-1+m.window() > at {
				left += c.cost
			}
		}
		if left < min(used, m.limit.Max) {
			return used, at
		}
	}
	panic("nothing ever leaves")
}

func TestSubWindowsAgreeWithAModel(t *testing.T) {
	t.Parallel()
	stores := []ration.Store{new(ration.MemoryStore), &ration.RedisStore{Client: redistest.Shared(t).Client(t), Timeout: time.Minute}}
	rapid.Check(t, func(rt *rapid.T) {
		window := rapid.SampledFrom([]int64{1_000, 1_001, 1_500, 9_999}).Draw(rt, "window")
		limit := ration.Limit{
			Algorithm:  ration.SubWindows,
			Max:        rapid.IntRange(1, 12).Draw(rt, "Max"),
			Window:     time.Duration(window) * time.Microsecond,
			Margin:     time.Duration(rapid.SampledFrom([]int64{0, 0, 1, 99, 3_000}).Draw(rt, "margin")) * time.Microsecond,
			Resolution: time.Duration(rapid.OneOf(rapid.Int64Range(window/500, window), rapid.Just(window), rapid.Just(window/10)).Draw(rt, "resolution")) * time.Microsecond,
		}
		m := &subModel{limit: limit, last: map[int]int64{}}
		budget, now := "subs-"+store.NewBookingID().String(), int64(1_795_000_000_123_457)
		type booking struct {
			call    *subCall
			answers []store.Booking
		}
		var booked []booking
		revision := 0
		spent := false
		account := func() ration.Account { return ration.Account{ID: "a", Limits: []ration.Limit{m.limit}} }
		rt.Repeat(map[string]func(*rapid.T){
			"book": func(rt *rapid.T) {
				keep := rapid.SampledFrom([]int{0, 0, 250, 900}).Draw(rt, "keep")
				cost := rapid.IntRange(1, m.limit.Max).Draw(rt, "cost")
				for range rapid.IntRange(1, 6).Draw(rt, "times") {
					slot := m.offer(now, cost, keep)
					r := store.BookRequest{
						ID: store.NewBookingID(), Budget: budget, Accounts: rationtest.AccountsOf(rt, []ration.Account{account()}), Cost: cost, Reserve: keep,
						Revision: revision, MaxWait: rapid.SampledFrom([]time.Duration{store.Forever, 0, 3 * time.Millisecond}).Draw(rt, "MaxWait"), Now: time.UnixMicro(now),
					}
					within := r.MaxWait == store.Forever || slot-now <= r.MaxWait.Microseconds()
					b := booking{}
					for i, kept := range stores {
						answer, err := kept.Book(rt.Context(), r)
						require.NoError(rt, err)
						require.Equal(rt, slot-now, answer.Slot.UnixMicro()-now, "store %d", i)
						require.Equal(rt, within, answer.Booked, "store %d", i)
						b.answers = append(b.answers, answer)
					}
					if within {
						b.call = m.add(slot, cost, keep)
						booked = append(booked, b)
					}
				}
			},
			"cancel": func(rt *rapid.T) {
				if len(booked) == 0 {
					rt.Skip()
				}
				i := rapid.IntRange(0, len(booked)-1).Draw(rt, "which")
				for j, kept := range stores {
					require.NoError(rt, kept.Cancel(rt.Context(), store.CancelRequest{Booking: booked[i].answers[j], Now: time.UnixMicro(now)}))
				}
				m.cancel(now, booked[i].call)
				booked = slices.Delete(booked, i, i+1)
			},
			"record": func(rt *rapid.T) {
				slot := now - rapid.Int64Range(-2, m.window()).Draw(rt, "ago")
				cost := rapid.IntRange(1, 20).Draw(rt, "units")
				if rapid.IntRange(0, 3).Draw(rt, "seldom") > 0 || slot <= now-m.window() {
					rt.Skip()
				}
				id := store.NewBookingID()
				for _, kept := range stores {
					require.NoError(rt, kept.Record(rt.Context(), store.RecordRequest{
						ID: id, Budget: budget, Account: account(), Now: time.UnixMicro(now),
						Spent: []store.Spending{{Slot: time.UnixMicro(slot), Cost: cost}},
					}))
				}
				m.add(slot, cost, 0)
				spent = true
			},
			"step": func(rt *rapid.T) {
				now += rapid.SampledFrom([]int64{1, 7, m.length() - 1, m.length(), m.window() - 1, m.window(), 3 * m.window()}).Draw(rt, "by")
			},
			"step to an edge": func(rt *rapid.T) {
				if len(booked) == 0 {
					rt.Skip()
				}
				edge := rapid.SampledFrom(booked).Draw(rt, "booking").call.slot/m.length()*m.length() + rapid.Int64Range(-2, 1).Draw(rt, "beside")
				if rapid.Bool().Draw(rt, "leaving") {
					edge += m.length() + m.window()
				}
				now = max(now, edge)
			},
			"change Max": func(rt *rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "seldom") > 0 {
					rt.Skip()
				}
				most := rapid.IntRange(1, 12).Draw(rt, "Max")
				spent = spent || most < m.limit.Max
				m.limit.Max, revision = most, revision+1
			},
			"usage": func(rt *rapid.T) {
				used, freeAt := m.usage(now)
				for i, kept := range stores {
					all, err := kept.Usage(rt.Context(), store.UsageRequest{Budget: budget, Accounts: rationtest.AccountsOf(rt, []ration.Account{account()}), Now: time.UnixMicro(now)})
					require.NoError(rt, err)
					got := all[0].Limits[0]
					require.Equal(rt, used, got.Used+got.Ahead, "store %d", i)
					require.Equal(rt, max(0, m.limit.Max-used), got.Remaining)
					if freeAt == 0 {
						require.True(rt, got.FreeAt.IsZero())
					} else {
						require.Equal(rt, freeAt-now, got.FreeAt.UnixMicro()-now, "store %d", i)
					}
				}
			},
		})
		if spent {
			return
		}
		// What leaves arrives a little later, in any order, at a provider that
		// keeps an exact log, and at one that counts the sub-windows that begin
		// within a window.
		for _, by := range []func(arrival, end int64) bool{
			func(arrival, end int64) bool { return arrival > end-window },
			func(arrival, end int64) bool { return arrival-arrival%m.length() > end-window },
		} {
			var arrivals []subCall
			for _, b := range booked {
				jitter := rapid.SampledFrom([]int64{0, m.limit.Margin.Microseconds()}).Draw(rt, "jitter")
				arrivals = append(arrivals, subCall{slot: b.call.slot + jitter, cost: b.call.cost})
			}
			for _, last := range arrivals {
				units := 0
				for _, a := range arrivals {
					if a.slot <= last.slot && by(a.slot, last.slot) {
						units += a.cost
					}
				}
				require.LessOrEqual(rt, units, m.limit.Max, "the provider refuses")
			}
		}
	})
}
