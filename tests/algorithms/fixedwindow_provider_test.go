package algorithms_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// A fixedProvider is a provider that counts in fixed windows when a call arrives.
type fixedProvider struct {
	limit    ration.Limit
	location *time.Location
	ends     time.Time // of the window that a call began
	name     string    // of the window under way
	units    int
}

// window names the window of an instant, by the provider's clocks: a day by its
// date, and what is shorter by the epoch.
func (p *fixedProvider) window(at time.Time) string {
	switch {
	case p.limit.FirstUse:
		if !at.Before(p.ends) {
			p.ends = at.Add(p.limit.Window)
		}
		return p.ends.String()
	case p.limit.Window == day:
		return at.In(p.location).Format(time.DateOnly)
	}
	return at.UTC().Truncate(p.limit.Window).String()
}

// take counts a call, and reports whether it is not refused.
func (p *fixedProvider) take(at time.Time, cost int) bool {
	if w := p.window(at); w != p.name {
		p.name, p.units = w, 0
	}
	p.units += cost
	return p.units <= p.limit.Max
}

// A fixedCall is a booking, or a call of others, that the provider gets.
type fixedCall struct {
	arrives time.Time
	cost    int
	booking store.Booking
}

func arrivals(calls []fixedCall) []fixedCall {
	return slices.SortedFunc(slices.Values(calls), func(a, b fixedCall) int {
		return cmp.Or(a.arrives.Compare(b.arrives), a.booking.Slot.Compare(b.booking.Slot))
	})
}

// A fixedCrawl is callers, of two kinds that do not wait for each other, and a
// provider.
type fixedCrawl struct {
	*fixedClient
	accounts *store.Accounts
	limit    ration.Limit
	location *time.Location
	calls    []fixedCall
}

func (c *fixedCrawl) ask(rt *rapid.T, cost, keep int) {
	b, err := c.store.Book(context.Background(), store.BookRequest{
		ID: store.NewBookingID(), Budget: c.budget, Accounts: c.accounts, Cost: cost, Reserve: keep, MaxWait: store.Forever, Now: c.now,
	})
	require.NoError(rt, err)
	late := rapid.SampledFrom([]time.Duration{0, us, c.limit.Margin / 2, c.limit.Margin}).Draw(rt, "late").Truncate(us)
	late = min(late, c.limit.Margin)
	c.calls = append(c.calls, fixedCall{b.Slot.Add(late), cost, b})
}

// handBack cancels the i-th call.
func (c *fixedCrawl) handBack(i int) {
	c.cancel(c.calls[i].booking)
	c.calls = slices.Delete(c.calls, i, i+1)
}

// provider returns the provider as it is when all that arrives by an instant has.
func (c *fixedCrawl) provider(rt *rapid.T, until time.Time) *fixedProvider {
	p := &fixedProvider{limit: c.limit, location: c.location}
	for _, call := range arrivals(c.calls) {
		if !call.arrives.After(until) {
			require.True(rt, p.take(call.arrives, call.cost), "the call at %v is refused", call.arrives)
		}
	}
	return p
}

// begin has a competing client begin a window, with a call that costs nothing, and reports
// the window's end with Reset. Callers whose slots no longer fit book again.
func (c *fixedCrawl) begin(rt *rapid.T) {
	p := c.provider(rt, c.now)
	if !c.limit.FirstUse || c.now.Before(p.ends) {
		rt.Skip("a window is under way")
	}
	c.calls = append(c.calls, fixedCall{arrives: c.now})
	c.reset(c.accounts, c.now.Add(c.limit.Window))
	until := c.pausedUntil("a")
	for i := 0; i < len(c.calls); i++ {
		if b := c.calls[i].booking; b.Slot.After(c.now) && b.Slot.Before(until) {
			c.handBack(i)
			c.ask(rt, b.Cost, 0)
			i = -1
		}
	}
}

// cancelOne cancels a booking, whose call never arrives. What begins a window when a call
// arrives must not be cancelled alone when the next window is booked: it would begin earlier
// than the provider's.
func (c *fixedCrawl) cancelOne(rt *rapid.T) {
	var some []int
	for i, call := range c.calls {
		b := call.booking
		same := func(o fixedCall) bool { return o.booking.ID != b.ID && o.booking.Slot.Equal(b.Slot) }
		next := func(o fixedCall) bool { return !o.booking.Slot.Before(b.Slot.Add(c.limit.Window)) }
		if b.Booked && !b.Slot.Before(c.now) && (!c.limit.FirstUse || slices.ContainsFunc(c.calls, same) || !slices.ContainsFunc(c.calls, next)) {
			some = append(some, i)
		}
	}
	if len(some) == 0 {
		rt.Skip("there is nothing to cancel")
	}
	c.handBack(rapid.SampledFrom(some).Draw(rt, "call"))
}

// stepToEdge moves the clock to where a window ends, or some margins beside.
func (c *fixedCrawl) stepToEdge(rt *rapid.T) {
	edge := c.now.Truncate(c.limit.Window).Add(c.limit.Window)
	if c.limit.FirstUse {
		edge = c.provider(rt, c.now).ends
	} else if c.limit.Zone != "" {
		y, m, d := c.now.In(c.location).Date()
		edge = time.Date(y, m, d+1, 0, 0, 0, 0, c.location)
	}
	half := c.limit.Margin / 2
	at := edge.Add(rapid.SampledFrom([]time.Duration{-5 * half, -4*half - us, -3 * half, -2*half - us, -2 * half, -half, -us, 0, half, 2 * half}).Draw(rt, "beside"))
	c.now = latest(c.now, at.Truncate(us))
}

// most is how many units arrived in any window's length.
func (c *fixedCrawl) most() (most int) {
	all := arrivals(c.calls)
	for i, first := range all {
		units := 0
		for _, call := range all[i:] {
			if call.arrives.Before(first.arrives.Add(c.limit.Window)) {
				units += call.cost
			}
		}
		most = max(most, units)
	}
	return most
}

func TestAProviderThatCountsInFixedWindowsRefusesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := &fixedCrawl{fixedClient: newFixedClient(rt, new(ration.MemoryStore)), location: time.UTC}
		c.limit = ration.Limit{
			Algorithm: ration.FixedWindow,
			Max:       rapid.IntRange(2, 6).Draw(rt, "Max"),
			Window:    rapid.SampledFrom([]time.Duration{10 * time.Second, time.Minute, day}).Draw(rt, "window"),
			Margin:    rapid.SampledFrom([]time.Duration{0, us, time.Second, 2 * time.Second}).Draw(rt, "margin"),
			FirstUse:  rapid.Bool().Draw(rt, "first use"),
		}
		times := 2 // Max in the window's length
		if c.limit.Window == day && !c.limit.FirstUse {
			c.limit.Zone = rapid.SampledFrom([]string{"America/Los_Angeles", "Asia/Kathmandu", "Australia/Lord_Howe"}).Draw(rt, "zone")
			location, err := time.LoadLocation(c.limit.Zone)
			require.NoError(rt, err)
			c.location, times = location, 3
		}
		c.now = time.UnixMilli(rapid.Int64Range(1_767_000_000_000, 1_799_000_000_000).Draw(rt, "began"))
		c.accounts = rationtest.AccountsOf(rt, []ration.Account{{ID: "a", Limits: []ration.Limit{c.limit}}})
		book := func(rt *rapid.T) {
			cost, keep := rapid.IntRange(1, 2).Draw(rt, "cost"), rapid.SampledFrom([]int{0, 0, 500}).Draw(rt, "keep")
			for range rapid.IntRange(1, 6).Draw(rt, "times") {
				c.ask(rt, cost, keep)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"book": book, "book again": book, "cancel": c.cancelOne, "begin": c.begin,
			"pause": func(rt *rapid.T) {
				_, err := c.store.Pause(rt.Context(), store.PauseRequest{Budget: c.budget, Account: "a", For: c.limit.Window / 3, Now: c.now})
				require.NoError(rt, err)
			},
			"step": func(rt *rapid.T) {
				part := rapid.SampledFrom([]time.Duration{1, 10, 50, 99, 100, 101, 250}).Draw(rt, "hundredths")
				c.now = c.now.Add(c.limit.Window / 100 * part)
			},
			"step to an edge": c.stepToEdge,
			"step a little":   func(rt *rapid.T) { c.now = c.now.Add(us) },
		})
		c.provider(rt, c.now.Add(1000*day))
		if c.limit.Margin == 0 {
			require.LessOrEqual(rt, c.most(), times*c.limit.Max)
		}
	})
}
