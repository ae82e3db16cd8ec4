package differential_test

import (
	"fmt"
	"slices"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// Everything at once drives MemoryStore and RedisStore, which must give the same
// answers: accounts with limits of several algorithms and scopes, alone and
// shared, bookings that keep back and overtake, limits that change. Run it for
// longer with -rapid.checks=20000.
//
// Whatever else happens, no window of a limit that is counted exactly may hold
// more than the largest Max that it ever had of what left.

func (w *mixedWorld) book(rt *rapid.T) {
	f := w.fleet(rt)
	accounts := rapid.SampledFrom(f.lists).Draw(rt, "list")
	scopes := rapid.SliceOfDistinct(rapid.SampledFrom(mixedScopes), rapid.ID[string]).Draw(rt, "scopes")
	// Of what no limit covers any cost is one.
	most := min(accounts.MaxCost(scopes...), 2*w.kind.most)
	r := store.BookRequest{
		Budget: w.budget, Accounts: accounts, Revision: f.revision, Now: time.UnixMicro(w.now),
		Cost:    rapid.OneOf(rapid.IntRange(1, most), rapid.IntRange(1, min(2, most))).Draw(rt, "cost"),
		Scopes:  scopes,
		Reserve: rapid.SampledFrom([]int{0, 0, 0, 1, 250, 500, 750, 999}).Draw(rt, "keep"),
		MaxWait: rapid.SampledFrom([]time.Duration{store.Forever, store.Forever, 0, 3 * time.Millisecond}).Draw(rt, "longest wait"),
	}
	lead := drawLead(rt)
	r.Lead = func() time.Duration { return lead }
	for i := range accounts.Meters() {
		most := min(int(accounts.MeterLimitSet(i).MaxCost(accounts.RelevantScopes(scopes))), 6*w.kind.most)
		r.Units = append(r.Units, rapid.OneOf(rapid.IntRange(0, most), rapid.IntRange(0, min(2, most))).Draw(rt, "units"))
	}
	for range rapid.IntRange(1, w.kind.burst).Draw(rt, "times") {
		r.ID = store.NewBookingID()
		if answers, _ := w.ask(rt, r); answers[0].Booked {
			w.booked = append(w.booked, &mixedBooking{request: r, answers: answers})
		}
	}
}

func (w *mixedWorld) cancel(rt *rapid.T) {
	b := w.past(rt)
	for i, kept := range w.stores {
		require.NoError(rt, kept.Cancel(rt.Context(), store.CancelRequest{Booking: b.answers[i], Now: time.UnixMicro(w.now)}))
	}
	b.cancelled = true
}

// correct says what a booking that has left has spent, and perhaps when: once, or again by what it was before.
func (w *mixedWorld) correct(rt *rapid.T) {
	b := w.past(rt)
	if b.slot() > w.now {
		rt.Skip("it has not left")
	}
	r := store.CorrectRequest{Cost: rapid.IntRange(0, 2*b.request.Cost).Draw(rt, "cost"), Now: time.UnixMicro(w.now)}
	for _, n := range b.request.Units {
		r.Units = append(r.Units, rapid.IntRange(0, 2*n+1).Draw(rt, "units"))
	}
	if rapid.Bool().Draw(rt, "at another time") {
		r.Slot = time.UnixMicro(rapid.Int64Range(b.slot(), w.now).Draw(rt, "when"))
	}
	keeps := rapid.Bool().Draw(rt, "keeps what it was")
	var said []string
	for i, kept := range w.stores {
		r.Booking = b.answers[i]
		corrected, err := kept.Correct(rt.Context(), r)
		require.NoError(rt, err)
		said = append(said, fmt.Sprint(corrected.Cost, corrected.Account, corrected.Slot.UnixMicro()))
		if !keeps {
			b.answers[i] = corrected
		}
	}
	require.Equal(rt, said[0], said[len(said)-1])
	b.cancelled = true // it counts for something else now
	for _, id := range b.charged() {
		w.indebted[id] = true
	}
}

// record enters debts, and bookings that may be known.
func (w *mixedWorld) record(rt *rapid.T) {
	f := w.fleet(rt)
	account := rapid.SampledFrom(f.accounts).Draw(rt, "account")
	var own []*mixedBooking
	for _, b := range w.booked {
		if !b.cancelled && slices.Contains(b.charged(), account.ID) {
			own = append(own, b)
		}
	}
	debt := store.Spending{
		Slot: time.UnixMicro(w.now - rapid.Int64Range(-2, 3_000).Draw(rt, "how long ago")),
		Cost: rapid.IntRange(1, 2*w.kind.most).Draw(rt, "units"),
	}
	scopes := rapid.SliceOfDistinct(rapid.SampledFrom(mixedScopes), rapid.ID[string]).Draw(rt, "scopes")
	indebted := rapid.Bool().Draw(rt, "a debt")
	var known []*mixedBooking
	if len(own) > 0 {
		known = rapid.SliceOfNDistinct(rapid.SampledFrom(own), 0, 3, rapid.ID[*mixedBooking]).Draw(rt, "known")
	}
	if !indebted && len(known) == 0 {
		rt.Skip("nothing to enter")
	}
	id := store.NewBookingID()
	for i, kept := range w.stores {
		r := store.RecordRequest{ID: id, Budget: w.budget, Account: account, Scopes: scopes, Now: time.UnixMicro(w.now)}
		if indebted {
			r.Spent = append(r.Spent, debt)
		}
		for _, b := range known {
			r.Spent = append(r.Spent, store.Spending{Slot: b.answers[i].Slot, Cost: b.answers[i].Cost, Entry: b.answers[i].Entry})
		}
		slices.SortStableFunc(r.Spent, func(a, b store.Spending) int { return a.Slot.Compare(b.Slot) })
		require.NoError(rt, kept.Record(rt.Context(), r))
	}
	w.indebted[account.ID] = true
}

func (w *mixedWorld) pause(rt *rapid.T) {
	account := rapid.SampledFrom(w.fleets[0].accounts).Draw(rt, "account").ID
	if len(w.meters) > 0 && rapid.Bool().Draw(rt, "its meter") {
		account = store.MeterID(account, w.meters[0].Unit)
	}
	length := time.Duration(rapid.Int64Range(1, 5_000).Draw(rt, "length")) * time.Microsecond
	var ends []int64
	for _, kept := range w.stores {
		end, err := kept.Pause(rt.Context(), store.PauseRequest{Budget: w.budget, Account: account, For: length, Now: time.UnixMicro(w.now)})
		require.NoError(rt, err)
		ends = append(ends, end.Until.UnixMicro())
	}
	require.Equal(rt, ends[0], ends[len(ends)-1])
}

func (w *mixedWorld) usage(rt *rapid.T) {
	accounts := rapid.SampledFrom(w.fleet(rt).lists).Draw(rt, "list")
	if len(accounts.Shared()) > 0 && rapid.Bool().Draw(rt, "of the shared") {
		accounts = rationtest.AccountsOf(rt, accounts.Shared())
	} else if len(accounts.Meters()) > 0 && rapid.Bool().Draw(rt, "of a meter") {
		meter := accounts.Meters()[0]
		accounts = rationtest.AccountsOf(rt, []ration.Account{{ID: store.MeterID(accounts.At(0).ID, meter.Unit), Limits: meter.Limits}})
	}
	var all []string
	for _, kept := range w.stores {
		usage, err := kept.Usage(rt.Context(), store.UsageRequest{Budget: w.budget, Accounts: accounts, Now: time.UnixMicro(w.now)})
		require.NoError(rt, err)
		said := ""
		for _, u := range usage {
			said += fmt.Sprintf("\n%s, paused until %d", u.Account, u.PausedUntil.UnixMicro())
			for _, l := range u.Limits {
				said += fmt.Sprintf("\n  %v: %d used, %d ahead, %d left, more in %d", l.Limit, l.Used, l.Ahead, l.Remaining, l.FreeAt.UnixMicro()-w.now)
			}
		}
		all = append(all, said)
	}
	require.Equal(rt, all[0], all[len(all)-1], "memory and redis")
}

// change gives limits another Max, Burst or Margin: of a higher revision, or of
// the same, which is an error.
func (w *mixedWorld) change(rt *rapid.T) {
	if rapid.IntRange(0, 3).Draw(rt, "seldom") > 0 {
		rt.Skip()
	}
	last := w.fleets[len(w.fleets)-1]
	w.found(rt, w.changed(rt, last), last.revision+min(1, rapid.IntRange(0, 3).Draw(rt, "revisions later")), nil)
}

// changed returns the accounts of a fleet with changed limits.
func (w *mixedWorld) changed(rt *rapid.T, last *mixedFleet) []ration.Account {
	accounts := slices.Clone(last.accounts)
	for i := range accounts {
		accounts[i].Limits = slices.Clone(accounts[i].Limits)
		for j := range accounts[i].Limits {
			l := &accounts[i].Limits[j]
			if rapid.Bool().Draw(rt, "another") {
				l.Max = rapid.IntRange(1, w.kind.most).Draw(rt, "Max")
				l.Burst = min(l.Burst, l.Max)
				l.Margin = rapid.SampledFrom([]time.Duration{l.Margin, l.Margin, 0, 200 * time.Microsecond}).Draw(rt, "margin")
			}
		}
	}
	return accounts
}

// card gives an account a card, or the budget, by somebody who has seen the last one, or has not. Of the budget's the next
// workers have the limits.
func (w *mixedWorld) card(rt *rapid.T) {
	if rapid.IntRange(0, 2).Draw(rt, "seldom") > 0 {
		rt.Skip()
	}
	last := w.fleets[len(w.fleets)-1]
	accounts := w.changed(rt, last)
	at := rapid.IntRange(-1, len(accounts)-1).Draw(rt, "account; -1: the budget")
	one, known := accounts[0], w.budgetCards
	r := store.CardRequest{Budget: w.budget, Why: "because", Now: time.UnixMicro(w.now)}
	if at >= 0 {
		one = accounts[at]
		if r.Account = one.ID; w.cards[one.ID] == nil {
			w.cards[one.ID] = make([]store.Edition, len(w.stores))
		}
		known = w.cards[one.ID]
	}
	r.Limits = one.Limits
	if rapid.IntRange(0, 4).Draw(rt, "only asks") == 0 {
		r.Limits, r.Why = nil, ""
	}
	behind, revision := rapid.IntRange(0, 4).Draw(rt, "behind") == 0, rapid.IntRange(0, last.revision).Draw(rt, "revision")
	changed, stale := false, rapid.IntRange(0, 9).Draw(rt, "knows the card") == 0
	var said []string
	for i, kept := range w.stores {
		if r.Known = (store.Edition{Revision: max(known[i].Revision, revision), Version: known[i].Version}); behind {
			r.Known = store.Edition{}
		}
		if r.KnownCard = w.budgetCards[i].Version; stale {
			r.KnownCard++
		}
		reply, err := kept.Card(rt.Context(), r)
		require.NoError(rt, err)
		known[i], changed = reply.Card.Edition, reply.Changed
		said = append(said, fmt.Sprint(reply.Changed, reply.Behind, reply.Card.Revision, reply.Card.Version > 0, reply.Card.Why, store.EncodeLimits(reply.Card.Limits)))
	}
	require.Equal(rt, said[0], said[len(said)-1], "memory and redis")
	switch {
	case changed && at >= 0:
		w.cardLimits = append(w.cardLimits, accounts)
	case changed:
		w.found(rt, accounts, last.revision, slices.Clone(known))
	}
}

func (w *mixedWorld) step(rt *rapid.T) {
	w.now += rapid.SampledFrom([]int64{1, 2, 10, 499, 500, 501, 999, 1_000, 1_001, 2_000, 3_000, 10_000, 60_000}).Draw(rt, "by")
	w.latest = max(w.latest, w.now)
}

// stepToEdge moves the clock forward to where a booking's slot comes, or leaves a
// window.
func (w *mixedWorld) stepToEdge(rt *rapid.T) {
	at := w.past(rt).slot() + rapid.Int64Range(-1, 1).Draw(rt, "beside")
	if rapid.Bool().Draw(rt, "leaving") {
		limits := rapid.SampledFrom(w.fleets[0].accounts).Draw(rt, "account").Limits
		at += rapid.SampledFrom(limits).Draw(rt, "limit").Window.Microseconds()
	}
	w.now = max(w.now, at)
	w.latest = max(w.latest, w.now)
}

// stepBack moves the clock back by no more than the shortest window in all, less what a margin
// may have grown by meanwhile: what has left the window is kept for as long again.
func (w *mixedWorld) stepBack(rt *rapid.T) {
	if least := w.latest - 1_000 + 200; least < w.now {
		w.now = rapid.Int64Range(least, w.now-1).Draw(rt, "back to")
	}
}

// windows demands that no window of an exact limit holds more than Max of what
// left, by whichever lane.
func (w *mixedWorld) windows(rt *rapid.T) {
	for at, account := range w.fleets[0].accounts {
		if w.indebted[account.ID] {
			continue
		}
		for j, l := range account.Limits {
			if l.Algorithm > ration.StreamLog && l.Algorithm != ration.SubWindows {
				continue
			}
			for _, f := range w.fleets {
				l.Max = max(l.Max, f.accounts[at].Limits[j].Max)
			}
			for _, accounts := range w.cardLimits {
				l.Max = max(l.Max, accounts[at].Limits[j].Max)
			}
			var left []*mixedBooking
			for _, b := range w.booked {
				if !b.cancelled && slices.Contains(b.charged(), account.ID) && (l.Scope == "" || slices.Contains(b.request.Scopes, l.Scope)) {
					left = append(left, b)
				}
			}
			for _, first := range left {
				units := 0
				for _, b := range left {
					if since := b.slot() - first.slot(); since >= 0 && since < l.Window.Microseconds() {
						units += b.request.Cost
					}
				}
				require.LessOrEqual(rt, units, l.Max, "%v of account %s from %d", l, account.ID, first.slot())
			}
		}
	}
}

// meterWindows demands the same of the meters.
func (w *mixedWorld) meterWindows(rt *rapid.T) {
	for i, meter := range w.meters {
		for _, l := range meter.Limits {
			if l.Algorithm > ration.StreamLog && l.Algorithm != ration.SubWindows {
				continue
			}
			left := make(map[string][]*mixedBooking)
			for _, b := range w.booked {
				if !b.cancelled && (l.Scope == "" || slices.Contains(b.request.Scopes, l.Scope)) {
					left[b.answers[0].Account] = append(left[b.answers[0].Account], b)
				}
			}
			for account, all := range left {
				for _, first := range all {
					units := 0
					for _, b := range all {
						if since := b.slot() - first.slot(); since >= 0 && since < l.Window.Microseconds() {
							units += b.request.Units[i]
						}
					}
					require.LessOrEqual(rt, units, l.Max, "%v of %s of account %s from %d", l, meter.Unit, account, first.slot())
				}
			}
		}
	}
}

func TestStoresAgreeOnAllAtOnce(t *testing.T) {
	t.Parallel()
	agreeOnAllAtOnce(t, redistest.Start(t).Client(t),
		kindOfWorld{name: "one account", accounts: 1, most: 8, burst: 4},
		kindOfWorld{name: "one account with all that happens", accounts: 1, most: 8, burst: 4, back: true, spends: true},
		kindOfWorld{name: "a pool", accounts: 4, most: 6, burst: 4},
		kindOfWorld{name: "pools that share accounts", accounts: 4, lists: 3, most: 8, burst: 4},
		kindOfWorld{name: "pools that share accounts, with all that happens", accounts: 4, lists: 4, most: 8, burst: 4, back: true, spends: true},
		kindOfWorld{name: "long queues", accounts: 2, lists: 2, most: 40, burst: 12, spends: true},
	)
}

func TestStoresAgreeOnAllAtOnceOnACluster(t *testing.T) {
	t.Parallel()
	agreeOnAllAtOnce(t, redistest.StartCluster(t, 3).Client(t),
		kindOfWorld{name: "one account with all that happens", accounts: 1, most: 8, burst: 4, back: true, spends: true},
		kindOfWorld{name: "pools that share accounts, with all that happens", accounts: 4, lists: 4, most: 8, burst: 4, back: true, spends: true},
	)
}

// agreeOnAllAtOnce holds MemoryStore and a RedisStore to the same answers.
func agreeOnAllAtOnce(t *testing.T, client redis.UniversalClient, kinds ...kindOfWorld) {
	kept := &ration.RedisStore{Client: client, Timeout: time.Minute}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				w := newMixedWorld(rt, kind, new(ration.MemoryStore), kept)
				actions := map[string]func(*rapid.T){
					"book": w.book, "book again": w.book, "book and again": w.book,
					"cancel": w.cancel, "cancel again": w.cancel, "pause": w.pause, "usage": w.usage, "change": w.change, "card": w.card,
					"step": w.step, "step to an edge": w.stepToEdge,
				}
				if kind.back {
					actions["step back"] = w.stepBack
				}
				if kind.spends {
					actions["record"], actions["correct"] = w.record, w.correct
				}
				rt.Repeat(actions)
				w.usage(rt)
				w.windows(rt)
				w.meterWindows(rt)
			})
		})
	}
}
