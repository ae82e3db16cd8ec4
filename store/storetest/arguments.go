package storetest

import (
	"context"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

// argumentRules are about requests that are refused, and contexts that end.
var argumentRules = []rule{
	{"arguments are refused before anything is entered", func(d *desk) {
		a := d.single(limit(5, 10*sec), limit(3, 20*sec))
		for says, spoil := range map[string]func(*ration.BookRequest){
			"no ID":                     func(r *ration.BookRequest) { r.ID = ration.BookingID{} },
			"no accounts":               func(r *ration.BookRequest) { r.Accounts = nil },
			"an empty list of accounts": func(r *ration.BookRequest) { r.Accounts = new(ration.Accounts) },
			"a cost of 0":               func(r *ration.BookRequest) { r.Cost = 0 },
			"a cost of -1":              func(r *ration.BookRequest) { r.Cost = -1 },
			"a cost above Max":          func(r *ration.BookRequest) { r.Cost = 4 },
			"a cost above 2^53":         func(r *ration.BookRequest) { r.Cost = 1<<53 + 1 },
			"a negative longest wait":   func(r *ration.BookRequest) { r.MaxWait = -1 },
			"the least longest wait":    func(r *ration.BookRequest) { r.MaxWait = -1 << 63 },
			"a year before 1970":        func(r *ration.BookRequest) { r.Now = time.Unix(-1, 0) },
			"a year after 2112":         func(r *ration.BookRequest) { r.Now = time.UnixMicro(1<<52 + 1) },
		} {
			r := d.request(a, 1, ration.Forever)
			spoil(&r)
			_, err := d.store.Book(d.t.Context(), r)
			d.malformed(err, says)
		}
		d.used(a, 0, 5, never)
		d.slots(a, 0)
	}},
	{"a cost that no account can take is refused", func(d *desk) {
		a := d.list(account("a", limit(3, 10*sec)), account("b", limit(9, sec), limit(4, 10*sec)))
		_, err := d.store.Book(d.t.Context(), d.request(a, 5, ration.Forever))
		d.malformed(err, "a cost of 5")
		d.slot(a, 4, 0)
	}},
	{"names are refused that are empty or long or have spaces or braces", func(d *desk) {
		a := d.single(limit(1, 10*sec))
		ctx := d.t.Context()
		for _, name := range []string{
			"", " ", "a b", "a\tb", "a\nb", "a\x00b", "a\x7fb", "{", "}", "a{b", "a}b", "{a}", "a\xffb", strings.Repeat("x", 201),
		} {
			r := d.request(a, 1, ration.Forever)
			r.Budget = name
			_, err := d.store.Book(ctx, r)
			d.malformed(err, "Book in %q", name)
			err = d.store.Cancel(ctx, ration.CancelRequest{Booking: ration.Booking{ID: r.ID, Budget: name}, Now: d.clock})
			d.malformed(err, "Cancel in %q", name)
			_, err = d.store.Usage(ctx, ration.UsageRequest{Budget: name, Accounts: a, Now: d.clock})
			d.malformed(err, "Usage of %q", name)
			_, err = d.store.Pause(ctx, ration.PauseRequest{Budget: name, Account: "a", For: sec, Now: d.clock})
			d.malformed(err, "Pause in %q", name)
			_, err = d.store.Status(ctx, ration.StatusRequest{Budget: name, Now: d.clock})
			d.malformed(err, "Status of %q", name)
		}
	}},
	{"names may have 200 bytes of any alphabet", func(d *desk) {
		d.budget = strings.Repeat("é", 84) + ration.NewBookingID().String()
		d.slots(d.single(limit(1, 10*sec)), 0, 10*sec)
		d.budget = "/:*?[]\\\"'%^$" + d.budget[:len(d.budget)-12]
		d.slots(d.single(limit(1, 10*sec)), 0, 10*sec)
	}},
	{"accounts are refused that have no limit or a malformed one", func(d *desk) {
		for _, wrong := range []ration.Limit{
			{}, limit(0, sec), limit(-3, sec), limit(1, 0), limit(1, -sec), limit(1, time.Millisecond-us),
			limit(1, sec+time.Nanosecond), limit(1, 400*day), limit(1, 1<<63-1), limit(1_000_000_000_001, sec),
			{Max: 1, Window: sec, Algorithm: -1}, {Max: 1, Window: sec, Algorithm: 99},
		} {
			_, err := ration.NewAccounts(account("a", wrong))
			require.Error(d.t, err, "%+v", wrong)
			_, err = ration.NewAccounts(account("a", limit(1, sec)), account("b", limit(1, sec), wrong))
			require.Error(d.t, err, "%+v", wrong)
		}
		for _, id := range []string{"", " ", "a b", "a:b", "{a}", "é", "a\n", strings.Repeat("x", 65)} {
			_, err := ration.NewAccounts(account(id, limit(1, sec)))
			require.Error(d.t, err, "%q", id)
			if id == "" {
				continue // of all
			}
			_, err = d.store.Pause(d.t.Context(), ration.PauseRequest{Budget: d.budget, Account: id, For: sec, Now: d.clock})
			d.malformed(err, "a pause of %q", id)
		}
		_, err := ration.NewAccounts()
		require.Error(d.t, err, "no accounts")
		_, err = ration.NewAccounts(account("a"))
		require.Error(d.t, err, "no limits")
		_, err = ration.NewAccounts(account("a", limit(1, sec)), account("a", limit(1, sec)))
		require.Error(d.t, err, "the same account twice")
	}},
	{"a cancellation without an ID or of another store's entry is refused", func(d *desk) {
		a := d.single(limit(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		spoilt := all[1]
		spoilt.ID = ration.BookingID{}
		err := d.store.Cancel(d.t.Context(), ration.CancelRequest{Booking: spoilt, Accounts: a, Now: d.clock})
		d.malformed(err, "no ID")
		for _, entry := range []string{"", "x", all[1].Entry + "x"} {
			spoilt = all[1]
			spoilt.Entry = entry
			err = d.store.Cancel(d.t.Context(), ration.CancelRequest{Booking: spoilt, Accounts: a, Now: d.clock})
			d.malformed(err, "an entry of %q", entry)
		}
		// The booking is still there, and can still be cancelled.
		d.used(a, 3, 0, 30*sec)
		d.cancel(all[1], a)
		d.slots(a, 10*sec)
	}},
	{"usage without accounts is refused", func(d *desk) {
		_, err := d.store.Usage(d.t.Context(), ration.UsageRequest{Budget: d.budget, Now: d.clock})
		d.malformed(err, "no accounts")
	}},
	{"a context that has ended is an error that matches", func(d *desk) {
		a := d.single(limit(1, 10*sec))
		all := d.slots(a, 0, 10*sec, 20*sec)
		cancelled, cancel := context.WithCancel(d.t.Context())
		cancel()
		expired, stop := context.WithDeadline(d.t.Context(), time.Now().Add(-time.Hour))
		defer stop()
		for want, ctx := range map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: expired} {
			_, err := d.store.Book(ctx, d.request(a, 1, ration.Forever))
			require.ErrorIs(d.t, err, want)
			err = d.store.Cancel(ctx, ration.CancelRequest{Booking: all[1], Accounts: a, Now: d.clock})
			require.ErrorIs(d.t, err, want)
			_, err = d.store.Usage(ctx, ration.UsageRequest{Budget: d.budget, Accounts: a, Now: d.clock})
			require.ErrorIs(d.t, err, want)
			_, err = d.store.Pause(ctx, ration.PauseRequest{Budget: d.budget, Account: "a", For: time.Hour, Now: d.clock})
			require.ErrorIs(d.t, err, want)
			_, err = d.store.Status(ctx, ration.StatusRequest{Budget: d.budget, Now: d.clock})
			require.ErrorIs(d.t, err, want)
			err = d.store.Enter(ctx, d.entering(a, spent(0, 1)))
			require.ErrorIs(d.t, err, want)
		}
		// None of it was done.
		require.Empty(d.t, d.status().PausedUntil)
		d.slots(a, 30*sec)
	}},
}

// malformed demands the error of a request that asking again cannot mend.
func (d *desk) malformed(err error, format string, args ...any) {
	d.t.Helper()
	message := append([]any{format}, args...)
	require.Error(d.t, err, message...)
	require.NotErrorIs(d.t, err, ration.ErrStoreUnavailable, message...)
}
