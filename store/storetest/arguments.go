package storetest

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// argumentRules are about requests that are refused, and contexts that end.
var argumentRules = []rule{
	{"arguments are refused before anything is entered", func(d *desk) {
		a := d.single(atMost(5, 10*sec), atMost(3, 20*sec))
		for says, spoil := range map[string]func(*store.BookRequest){
			"no ID":                     func(r *store.BookRequest) { r.ID = store.BookingID{} },
			"no accounts":               func(r *store.BookRequest) { r.Accounts = nil },
			"an empty list of accounts": func(r *store.BookRequest) { r.Accounts = new(store.Accounts) },
			"a cost of 0":               func(r *store.BookRequest) { r.Cost = 0 },
			"a cost of -1":              func(r *store.BookRequest) { r.Cost = -1 },
			"a cost above Max":          func(r *store.BookRequest) { r.Cost = 4 },
			"the largest cost":          func(r *store.BookRequest) { r.Cost = math.MaxInt },
			"a negative longest wait":   func(r *store.BookRequest) { r.MaxWait = -1 },
			"the least longest wait":    func(r *store.BookRequest) { r.MaxWait = -1 << 63 },
			"a year before 1970":        func(r *store.BookRequest) { r.Now = time.Unix(-1, 0) },
			"a year after 2112":         func(r *store.BookRequest) { r.Now = time.UnixMicro(1<<52 + 1) },
		} {
			r := d.request(a, 1, store.Forever)
			spoil(&r)
			_, err := d.store.Book(d.t.Context(), r)
			d.malformed(err, says)
		}
		d.used(a, 0, 5, never)
		d.slots(a, 0)
	}},
	{"a cost that no account can take is refused", func(d *desk) {
		a := d.list(account("a", atMost(3, 10*sec)), account("b", atMost(9, sec), atMost(4, 10*sec)))
		_, err := d.store.Book(d.t.Context(), d.request(a, 5, store.Forever))
		d.malformed(err, "a cost of 5")
		d.slot(a, 4, 0)
	}},
	{"names are refused that are empty or long or have spaces or braces", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		ctx := d.t.Context()
		for _, name := range []string{
			"", " ", "a b", "a\tb", "a\nb", "a\x00b", "a\x7fb", "{", "}", "a{b", "a}b", "{a}", "a\xffb", strings.Repeat("x", 201),
		} {
			r := d.request(a, 1, store.Forever)
			r.Budget = name
			_, err := d.store.Book(ctx, r)
			d.malformed(err, "Book in %q", name)
			err = d.store.Cancel(ctx, store.CancelRequest{Booking: store.Booking{ID: r.ID, Budget: name}, Now: d.clock})
			d.malformed(err, "Cancel in %q", name)
			_, err = d.store.Usage(ctx, store.UsageRequest{Budget: name, Accounts: a, Now: d.clock})
			d.malformed(err, "Usage of %q", name)
			_, err = d.store.Pause(ctx, store.PauseRequest{Budget: name, Account: "a", For: sec, Now: d.clock})
			d.malformed(err, "Pause in %q", name)
			_, err = d.store.Quarantine(ctx, store.QuarantineRequest{Budget: name, Token: "a", Reason: "dead", For: sec, Now: d.clock})
			d.malformed(err, "Quarantine in %q", name)
			_, err = d.store.Status(ctx, store.StatusRequest{Budget: name, Now: d.clock})
			d.malformed(err, "Status of %q", name)
		}
	}},
	{"names may have 200 bytes of any alphabet", func(d *desk) {
		d.budget = strings.Repeat("é", 84) + store.NewBookingID().String()
		d.slots(d.single(atMost(1, 10*sec)), 0, 10*sec)
		d.budget = "/:*?[]\\\"'%^$" + d.budget[:len(d.budget)-12]
		d.slots(d.single(atMost(1, 10*sec)), 0, 10*sec)
	}},
	{"accounts are refused that have no limit or a malformed one", func(d *desk) {
		for _, wrong := range []limit.Limit{
			{}, atMost(0, sec), atMost(-3, sec), atMost(1, 0), atMost(1, -sec), atMost(1, time.Millisecond-us),
			atMost(1, sec+time.Nanosecond), atMost(1, 400*day), atMost(1, 1<<63-1), atMost(limit.MaxUnits+1, sec),
			{Max: 1, Window: sec, Algorithm: -1}, {Max: 1, Window: sec, Algorithm: 99},
		} {
			_, err := store.NewAccounts(account("a", wrong))
			require.Error(d.t, err, "%+v", wrong)
			_, err = store.NewAccounts(account("a", atMost(1, sec)), account("b", atMost(1, sec), wrong))
			require.Error(d.t, err, "%+v", wrong)
		}
		for _, id := range []string{"", " ", "a b", "a:b", "{a}", "é", "a\n", strings.Repeat("x", 65)} {
			_, err := store.NewAccounts(account(id, atMost(1, sec)))
			require.Error(d.t, err, "%q", id)
			if id == "" {
				continue // of all
			}
			_, err = d.store.Pause(d.t.Context(), store.PauseRequest{Budget: d.budget, Account: id, For: sec, Now: d.clock})
			d.malformed(err, "a pause of %q", id)
		}
		_, err := store.NewAccounts()
		require.Error(d.t, err, "no accounts")
		_, err = store.NewAccounts(account("a"))
		require.Error(d.t, err, "no limits")
		_, err = store.NewAccounts(account("a", atMost(1, sec)), account("a", atMost(1, sec)))
		require.Error(d.t, err, "the same account twice")
	}},
	{"a cancellation without an ID or of another store's entry is refused", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		spoilt := all[1]
		spoilt.ID = store.BookingID{}
		err := d.store.Cancel(d.t.Context(), store.CancelRequest{Booking: spoilt, Accounts: a, Now: d.clock})
		d.malformed(err, "no ID")
		for _, entry := range []string{"", "x", all[1].Entry + "x"} {
			spoilt = all[1]
			spoilt.Entry = entry
			err = d.store.Cancel(d.t.Context(), store.CancelRequest{Booking: spoilt, Accounts: a, Now: d.clock})
			d.malformed(err, "an entry of %q", entry)
		}
		// The booking is still there, and can still be cancelled.
		d.used(a, 3, 0, 30*sec)
		d.cancel(all[1], a)
		d.slots(a, 10*sec)
	}},
	{"usage without accounts is refused", func(d *desk) {
		_, err := d.store.Usage(d.t.Context(), store.UsageRequest{Budget: d.budget, Now: d.clock})
		d.malformed(err, "no accounts")
	}},
	{"a context that has ended is an error that matches", func(d *desk) {
		a := d.single(atMost(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		cancelled, cancel := context.WithCancel(d.t.Context())
		cancel()
		expired, stop := context.WithDeadline(d.t.Context(), time.Now().Add(-time.Hour))
		defer stop()
		for want, ctx := range map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: expired} {
			_, err := d.store.Book(ctx, d.request(a, 1, store.Forever))
			require.ErrorIs(d.t, err, want)
			err = d.store.Cancel(ctx, store.CancelRequest{Booking: all[1], Accounts: a, Now: d.clock})
			require.ErrorIs(d.t, err, want)
			_, err = d.store.Usage(ctx, store.UsageRequest{Budget: d.budget, Accounts: a, Now: d.clock})
			require.ErrorIs(d.t, err, want)
			_, err = d.store.Pause(ctx, store.PauseRequest{Budget: d.budget, Account: "a", For: time.Hour, Now: d.clock})
			require.ErrorIs(d.t, err, want)
			_, err = d.store.Quarantine(ctx, store.QuarantineRequest{Budget: d.budget, Token: "a", Reason: "dead", For: sec, Now: d.clock})
			require.ErrorIs(d.t, err, want)
			_, err = d.store.Status(ctx, store.StatusRequest{Budget: d.budget, Now: d.clock})
			require.ErrorIs(d.t, err, want)
			err = d.store.Record(ctx, d.entering(a, spent(0, 1)))
			require.ErrorIs(d.t, err, want)
		}
		// None of it was done.
		require.Empty(d.t, d.status().Pauses)
		require.Empty(d.t, d.status().Quarantined)
		d.slots(a, 30*sec)
	}},
}

// malformed demands the error of a request that asking again cannot mend.
func (d *desk) malformed(err error, format string, args ...any) {
	d.t.Helper()
	message := append([]any{format}, args...)
	require.Error(d.t, err, message...)
	require.NotErrorIs(d.t, err, store.ErrStoreUnavailable, message...)
}
