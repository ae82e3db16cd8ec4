package algorithms_test

import (
	"context"
	"fmt"
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

// A fixedWorld is one budget in both stores.
type fixedWorld struct {
	clients []*fixedClient
	limits  []ration.Limit
	revise  int
	now     time.Time
	latest  time.Time
	booked  [][]store.Booking
}

func (w *fixedWorld) accounts(rt *rapid.T) *store.Accounts {
	return rationtest.AccountsOf(rt, []ration.Account{{ID: "a", Limits: w.limits}})
}

// each does the same on both stores, which must say the same.
func (w *fixedWorld) each(rt *rapid.T, do func(i int, d *fixedClient) string) {
	var said []string
	for i, d := range w.clients {
		d.t, d.now = rt, w.now
		said = append(said, do(i, d))
	}
	require.Equal(rt, said[0], said[1], "memory and redis at %v", w.now)
}

func drawFixedLimits(rt *rapid.T) []ration.Limit {
	one := rapid.Custom(func(rt *rapid.T) ration.Limit {
		l := ration.Limit{
			Algorithm: ration.FixedWindow,
			Max:       rapid.IntRange(3, 8).Draw(rt, "Max"),
			Window:    rapid.SampledFrom([]time.Duration{time.Minute, 10 * time.Minute, time.Hour, day}).Draw(rt, "window"),
			Margin:    rapid.SampledFrom([]time.Duration{0, us, time.Second, time.Minute}).Draw(rt, "margin"),
			Scope:     rapid.SampledFrom([]string{"", "", "read"}).Draw(rt, "scope"),
		}
		switch rapid.IntRange(0, 2).Draw(rt, "kind") {
		case 1:
			l.Zone = rapid.SampledFrom([]string{"America/Los_Angeles", "Asia/Kathmandu", "Australia/Lord_Howe"}).Draw(rt, "zone")
		case 2:
			l.FirstUse = true
		}
		return l
	})
	return rapid.SliceOfNDistinct(one, 1, 3, func(l ration.Limit) string {
		return fmt.Sprint(l.Window, l.Scope, l.Zone, l.FirstUse)
	}).Draw(rt, "limits")
}

func (w *fixedWorld) actions(rt *rapid.T) map[string]func(*rapid.T) {
	book := func(rt *rapid.T) {
		r := store.BookRequest{
			Budget: w.clients[0].budget, Accounts: w.accounts(rt), Now: w.now, Revision: w.revise,
			MaxWait: rapid.SampledFrom([]time.Duration{0, time.Hour, store.Forever, store.Forever}).Draw(rt, "wait"),
			Reserve: rapid.SampledFrom([]int{0, 0, 400}).Draw(rt, "keep"),
			Scopes:  rapid.SampledFrom([][]string{nil, {"read"}}).Draw(rt, "scopes"),
		}
		r.Cost = rapid.IntRange(1, min(3, r.Accounts.MaxCost(r.Scopes...))).Draw(rt, "cost")
		for range rapid.IntRange(1, 6).Draw(rt, "times") {
			r.ID = store.NewBookingID()
			var both []store.Booking
			w.each(rt, func(_ int, d *fixedClient) string {
				b, err := d.store.Book(context.Background(), r)
				require.NoError(rt, err)
				both = append(both, b)
				return fmt.Sprint(b.Booked, b.Account, b.Slot.UnixMicro(), b.Effective)
			})
			if both[0].Booked {
				w.booked = append(w.booked, both)
			}
		}
	}
	return map[string]func(*rapid.T){
		"book": book, "book again": book, "and again": book,
		"cancel": func(rt *rapid.T) {
			if len(w.booked) == 0 {
				rt.Skip("nothing is booked")
			}
			both := rapid.SampledFrom(w.booked).Draw(rt, "booking")
			w.each(rt, func(i int, d *fixedClient) string { d.cancel(both[i]); return "" })
		},
		"record": func(rt *rapid.T) {
			ago := rapid.Int64Range(-int64(time.Minute), int64(2*time.Hour)).Draw(rt, "ago")
			cost := rapid.IntRange(1, 20).Draw(rt, "cost")
			slot := w.now.Add(-time.Duration(ago)).Truncate(us)
			w.each(rt, func(_ int, d *fixedClient) string { d.enter(w.accounts(rt), slot, cost); return "" })
		},
		"reset": func(rt *rapid.T) {
			in := rapid.Int64Range(0, int64(w.limits[0].Window)).Draw(rt, "in")
			at := w.now.Add(time.Duration(in)).Truncate(us)
			w.each(rt, func(_ int, d *fixedClient) string {
				d.reset(w.accounts(rt), at)
				return fmt.Sprint(d.pausedUntil("a").UnixMicro())
			})
		},
		"pause": func(rt *rapid.T) {
			length := rapid.SampledFrom([]time.Duration{us, time.Minute, time.Hour}).Draw(rt, "length")
			w.each(rt, func(_ int, d *fixedClient) string {
				end, err := d.store.Pause(context.Background(), store.PauseRequest{Budget: d.budget, Account: "a", For: length, Now: d.now})
				require.NoError(rt, err)
				return fmt.Sprint(end.Until.UnixMicro())
			})
		},
		"step": func(rt *rapid.T) {
			by := rapid.SampledFrom([]time.Duration{us, time.Second, 30 * time.Second, time.Minute, 7 * time.Minute, time.Hour, 23 * time.Hour, day}).Draw(rt, "by")
			w.now = w.now.Add(by)
			w.latest = latest(w.latest, w.now)
		},
		"step back": func(rt *rapid.T) {
			if back := w.now.Add(-20 * time.Second); !back.Before(w.latest.Add(-time.Minute)) {
				w.now = back
			}
		},
		"change Max": func(rt *rapid.T) {
			w.revise++
			w.limits = slices.Clone(w.limits)
			w.limits[0].Max = rapid.IntRange(3, 12).Draw(rt, "Max")
		},
		"": func(rt *rapid.T) {
			w.each(rt, func(_ int, d *fixedClient) string {
				all, err := d.store.Usage(context.Background(), store.UsageRequest{Budget: d.budget, Accounts: w.accounts(rt), Now: d.now})
				require.NoError(rt, err)
				for i := range all {
					all[i].Total = 0 // which begins where a store chooses
				}
				return fmt.Sprintf("%+v", all)
			})
		},
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func TestStoresAgreeOnFixedWindows(t *testing.T) {
	t.Parallel()
	kept := &ration.RedisStore{Client: redistest.Start(t).Client(t), Timeout: time.Minute}
	rapid.Check(t, func(rt *rapid.T) {
		memory := newFixedClient(rt, new(ration.MemoryStore))
		redis := newFixedClient(rt, kept)
		redis.budget = memory.budget
		began := rapid.SampledFrom([]string{
			"2026-11-20 12:00:00 +0000", "2026-03-08 09:59:00 +0000", "2026-11-01 08:30:00 +0000", "2026-10-03 15:00:00 +0000",
		}).Draw(rt, "began")
		now, err := time.Parse("2006-01-02 15:04:05 -0700", began)
		require.NoError(rt, err)
		w := &fixedWorld{clients: []*fixedClient{memory, redis}, limits: drawFixedLimits(rt), now: now, latest: now}
		rt.Repeat(w.actions(rt))
	})
}
