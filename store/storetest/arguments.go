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
	{"malformed requests are refused before anything is booked", func(h *harness) {
		a := h.single(atMost(5, 10*sec), atMost(3, 20*sec))
		for says, spoil := range map[string]func(*store.BookRequest){
			"no ID":                     func(r *store.BookRequest) { r.ID = store.BookingID{} },
			"no accounts":               func(r *store.BookRequest) { r.Accounts = nil },
			"an empty list of accounts": func(r *store.BookRequest) { r.Accounts = new(store.Accounts) },
			"a cost of 0":               func(r *store.BookRequest) { r.Cost = 0 },
			"a cost of -1":              func(r *store.BookRequest) { r.Cost = -1 },
			"a cost above Max":          func(r *store.BookRequest) { r.Cost = 4 },
			"the largest cost":          func(r *store.BookRequest) { r.Cost = math.MaxInt },
			"a negative longest wait":   func(r *store.BookRequest) { r.MaxWait = -1 },
			"the least longest wait":    func(r *store.BookRequest) { r.MaxWait = store.Never + 1 },
			"a year before 1970":        func(r *store.BookRequest) { r.Now = time.Unix(-1, 0) },
			"a year after 2112":         func(r *store.BookRequest) { r.Now = time.UnixMicro(1<<52 + 1) },
		} {
			r := h.request(a, 1, store.Forever)
			spoil(&r)
			_, err := h.store.Book(h.t.Context(), r)
			h.malformed(err, says)
		}
		h.used(a, 0, 5, never)
		h.slots(a, 0)
	}},
	{"a cost that no account can take is refused", func(h *harness) {
		a := h.list(account("a", atMost(3, 10*sec)), account("b", atMost(9, sec), atMost(4, 10*sec)))
		_, err := h.store.Book(h.t.Context(), h.request(a, 5, store.Forever))
		h.malformed(err, "a cost of 5")
		h.slot(a, 4, 0)
	}},
	{"names are refused that are empty or long or have spaces or braces", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		ctx := h.t.Context()
		for _, name := range []string{
			"", " ", "a b", "a\tb", "a\nb", "a\x00b", "a\x7fb", "{", "}", "a{b", "a}b", "{a}", "a\xffb", strings.Repeat("x", 201),
		} {
			r := h.request(a, 1, store.Forever)
			r.Budget = name
			_, err := h.store.Book(ctx, r)
			h.malformed(err, "Book in %q", name)
			err = h.store.Cancel(ctx, store.CancelRequest{Booking: store.Booking{ID: r.ID, Budget: name}, Now: h.clock})
			h.malformed(err, "Cancel in %q", name)
			_, err = h.store.Usage(ctx, store.UsageRequest{Budget: name, Accounts: a, Now: h.clock})
			h.malformed(err, "Usage of %q", name)
			_, err = h.store.Pause(ctx, store.PauseRequest{Budget: name, Account: "a", For: sec, Now: h.clock})
			h.malformed(err, "Pause in %q", name)
			_, err = h.store.Quarantine(ctx, store.QuarantineRequest{Budget: name, Token: "a", Reason: "dead", For: sec, Now: h.clock})
			h.malformed(err, "Quarantine in %q", name)
			_, err = h.store.Status(ctx, store.StatusRequest{Budget: name, Now: h.clock})
			h.malformed(err, "Status of %q", name)
		}
	}},
	{"names may have 200 bytes of any alphabet", func(h *harness) {
		h.budget = strings.Repeat("é", 84) + store.NewBookingID().String()
		h.slots(h.single(atMost(1, 10*sec)), 0, 10*sec)
		h.budget = "/:*?[]\\\"'%^$" + h.budget[:len(h.budget)-12]
		h.slots(h.single(atMost(1, 10*sec)), 0, 10*sec)
	}},
	{"accounts are refused that have no limit or a malformed one", func(h *harness) {
		for _, wrong := range []limit.Limit{
			{}, atMost(0, sec), atMost(-3, sec), atMost(1, 0), atMost(1, -sec), atMost(1, time.Millisecond-us),
			atMost(1, sec+time.Nanosecond), atMost(1, 400*day), atMost(1, 1<<63-1), atMost(limit.MaxUnits+1, sec),
			{Max: 1, Window: sec, Algorithm: -1}, {Max: 1, Window: sec, Algorithm: 99},
		} {
			_, err := store.NewAccounts(account("a", wrong))
			require.Error(h.t, err, "%+v", wrong)
			_, err = store.NewAccounts(account("a", atMost(1, sec)), account("b", atMost(1, sec), wrong))
			require.Error(h.t, err, "%+v", wrong)
		}
		for _, id := range []string{"", " ", "a b", "a:b", "{a}", "é", "a\n", strings.Repeat("x", 65)} {
			_, err := store.NewAccounts(account(id, atMost(1, sec)))
			require.Error(h.t, err, "%q", id)
			if id == "" {
				continue // of all
			}
			_, err = h.store.Pause(h.t.Context(), store.PauseRequest{Budget: h.budget, Account: id, For: sec, Now: h.clock})
			h.malformed(err, "a pause of %q", id)
		}
		_, err := store.NewAccounts()
		require.Error(h.t, err, "no accounts")
		_, err = store.NewAccounts(account("a"))
		require.Error(h.t, err, "no limits")
		_, err = store.NewAccounts(account("a", atMost(1, sec)), account("a", atMost(1, sec)))
		require.Error(h.t, err, "the same account twice")
	}},
	{"a cancellation without an ID or of another store's entry is refused", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		spoilt := all[1]
		spoilt.ID = store.BookingID{}
		err := h.store.Cancel(h.t.Context(), store.CancelRequest{Booking: spoilt, Now: h.clock})
		h.malformed(err, "no ID")
		for _, entry := range []string{"", "x", all[1].Entry + "x"} {
			spoilt = all[1]
			spoilt.Entry = entry
			err = h.store.Cancel(h.t.Context(), store.CancelRequest{Booking: spoilt, Now: h.clock})
			h.malformed(err, "an entry of %q", entry)
		}
		// The booking is still there, and can still be cancelled.
		h.used(a, 3, 0, 30*sec)
		h.cancel(all[1])
		h.slots(a, 10*sec)
	}},
	{"usage without accounts is refused", func(h *harness) {
		_, err := h.store.Usage(h.t.Context(), store.UsageRequest{Budget: h.budget, Now: h.clock})
		h.malformed(err, "no accounts")
	}},
	{"a context that has ended is an error that matches", func(h *harness) {
		a := h.single(atMost(1, 10*sec))
		all := h.slots(a, 0, 10*sec, 20*sec)
		cancelled, cancel := context.WithCancel(h.t.Context())
		cancel()
		expired, stop := context.WithDeadline(h.t.Context(), time.Now().Add(-time.Hour))
		defer stop()
		for want, ctx := range map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: expired} {
			_, err := h.store.Book(ctx, h.request(a, 1, store.Forever))
			require.ErrorIs(h.t, err, want)
			if err = h.store.Cancel(ctx, store.CancelRequest{Booking: all[1], Now: h.clock}); err != nil {
				require.ErrorIs(h.t, err, want)
			}
			_, err = h.store.Usage(ctx, store.UsageRequest{Budget: h.budget, Accounts: a, Now: h.clock})
			require.ErrorIs(h.t, err, want)
			_, err = h.store.Pause(ctx, store.PauseRequest{Budget: h.budget, Account: "a", For: time.Hour, Now: h.clock})
			require.ErrorIs(h.t, err, want)
			_, err = h.store.Quarantine(ctx, store.QuarantineRequest{Budget: h.budget, Token: "a", Reason: "dead", For: sec, Now: h.clock})
			require.ErrorIs(h.t, err, want)
			_, err = h.store.Status(ctx, store.StatusRequest{Budget: h.budget, Now: h.clock})
			require.ErrorIs(h.t, err, want)
			err = h.store.Record(ctx, h.recordRequest(a, spent(0, 1)))
			require.ErrorIs(h.t, err, want)
		}
		// None of it was done, but for the cancellation, which may have been.
		require.Empty(h.t, h.status().Pauses)
		require.Empty(h.t, h.status().Quarantined)
		h.cancel(all[1])
		h.slots(a, 10*sec, 30*sec)
	}},
}

// malformed demands the error of a request that asking again cannot mend.
func (h *harness) malformed(err error, format string, args ...any) {
	h.t.Helper()
	message := append([]any{format}, args...)
	require.Error(h.t, err, message...)
	require.NotErrorIs(h.t, err, store.ErrStoreUnavailable, message...)
}
