package limits_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// A worker is one of a fleet, with a Keeper.
type worker struct {
	*limits.Keeper
	of      store.Store
	state   fleet.State
	waiting []*limits.Account

	asking     bool       // for the status: who asks again would wait for itself
	lost       bool       // the next status tells of a loss
	mu         sync.Mutex // protects all below
	overridden []string
	learned    []string
	paced      []string
	changes    int
}

func (w *worker) Overridden(account string, ours, theirs []limit.Limit) {
	w.note(&w.overridden, account, ours, theirs)
}
func (w *worker) Learned(account string, ours, theirs []limit.Limit, _ string) {
	w.note(&w.learned, account, ours, theirs)
}
func (w *worker) Paced(account string, ours, pace []limit.Limit, _ int) {
	w.note(&w.paced, account, ours, pace)
}
func (w *worker) Unclear(string, int, []limit.Limit) {}
func (w *worker) External(string, int)               {}
func (w *worker) Tell()                              {}
func (w *worker) Waiting() []*limits.Account         { return w.waiting }

func (w *worker) note(all *[]string, account string, ours, theirs []limit.Limit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*all = append(*all, fmt.Sprintf("%s: %s in place of %s", account, limit.Join(theirs), limit.Join(ours)))
}

func (w *worker) Now() time.Time { return time.Now() }
func (w *worker) Soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Second)
}
func (w *worker) Card(ctx context.Context, r store.CardRequest) (store.CardReply, error) {
	r.Budget = "b"
	return w.of.Card(ctx, r)
}
func (w *worker) Usage(ctx context.Context, all *store.Accounts) ([]store.Usage, error) {
	return w.of.Usage(ctx, store.UsageRequest{Budget: "b", Accounts: all})
}
func (w *worker) Reset(ctx context.Context, r store.ResetRequest) error {
	r.Budget = "b"
	return w.of.Reset(ctx, r)
}
func (w *worker) Reconcile(ctx context.Context, r store.ReconcileRequest) (store.Reconciliation, error) {
	r.Budget = "b"
	return w.of.Reconcile(ctx, r)
}

func (w *worker) State() *fleet.State { return &w.state }
func (w *worker) LimitsChanged() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
}

// Refresh asks for the status, as a budget does.
func (w *worker) Refresh(ctx context.Context) error {
	if w.asking {
		panic("who asks for the status waits for itself")
	}
	w.asking = true
	defer func() { w.asking = false }()
	asked := time.Now()
	status, err := w.of.Status(ctx, store.StatusRequest{Budget: "b", Known: w.state.Status.Version})
	if err != nil {
		return err
	}
	if err := w.AgreeOnCards(ctx, w.Rules(), &status, w.lost); err != nil {
		return err
	}
	w.NoteStatus(&status, asked)
	w.state.Status = status
	return nil
}

// newWorker returns a worker of a store with such limits of a budget.
func newWorker(of store.Store, revision int, all ...limit.Limit) *worker {
	w := &worker{of: of}
	w.Keeper = &limits.Keeper{Budget: "b", Limits: all, Revision: revision, Store: w, Fleet: w, Owner: w, InFlight: new(atomic.Int64)}
	return w
}

// account returns an account with the budget's limits.
func (w *worker) account(t *testing.T, id string) *limits.Account {
	t.Helper()
	account, err := w.NewAccount(w.Rules(), id, "", nil)
	require.NoError(t, err)
	return &account
}

// book books a call, by which the store and the worker hear of the account's limits, and returns the account under those in force.
func (w *worker) book(t *testing.T, account *limits.Account) *limits.Account {
	t.Helper()
	list, err := w.List(w.Rules(), *account)
	require.NoError(t, err)
	r := store.BookRequest{ID: store.NewBookingID(), Budget: "b", Accounts: list.Accounts, Cost: 1, MaxWait: store.Forever}
	list.Rules.Stamp(&r)
	booked, err := w.of.Book(t.Context(), r)
	require.NoError(t, err)
	require.False(t, booked.Behind)
	if booked.Effective.Limits == nil {
		return account
	}
	account, _ = w.Adopt(account, booked.Effective, time.Now())
	return account
}

// call returns a call that was just served.
func (w *worker) call(t *testing.T, account *limits.Account) *limits.Call {
	list, err := w.List(w.Rules(), *account)
	require.NoError(t, err)
	return &limits.Call{Account: account, List: list, Slot: time.Now(), Cost: 1}
}

// announce has responses announce so many an hour, as often as it takes to be believed.
func (w *worker) announce(t *testing.T, account *limits.Account, most int64) {
	for i := range int64(12) {
		account = w.book(t, w.InForce(account))
		windows := []provider.Window{{Limit: provider.Some(most), Remaining: provider.Some(most - 1 - i), Length: provider.Some(time.Hour)}}
		require.False(t, w.Read(t.Context(), w.call(t, account), windows, "here", false))
		time.Sleep(time.Second)
	}
}

// What an account's limits are follows from their edition: the program's, the operator's, what the provider has announced, and a higher
// revision of the program's.
func TestTheLatestEditionIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := new(memstore.Store)
		hour := func(n int) []limit.Limit { return []limit.Limit{{Max: n, Window: time.Hour}} }
		one, other := newWorker(of, 0, hour(1000)...), newWorker(of, 0, hour(1000)...)
		account := one.account(t, "a")
		require.Equal(t, hour(1000), one.book(t, account).WithoutMargin)
		require.Zero(t, account.Edition.Version)
		require.Equal(t, time.Second, account.Limits[0].Margin, "a hundredth, and a second at most")
		require.Equal(t, time.Second/2, account.Tolerance)
		require.Same(t, account, one.InForce(account))

		// The provider announces less.
		one.announce(t, account, 500)
		require.Equal(t, hour(500), one.InForce(account).WithoutMargin)
		require.True(t, one.InForce(account).Edition.Version > 0)
		require.Len(t, one.learned, 1)
		theirs := other.account(t, "a")
		require.Equal(t, hour(1000), other.InForce(theirs).WithoutMargin, "it has not heard of it")
		require.Equal(t, hour(500), other.book(t, theirs).WithoutMargin)
		require.Equal(t, hour(500), other.InForce(theirs).WithoutMargin)

		// An operator sets other limits, of which the others hear with the status.
		require.NoError(t, one.Set(t.Context(), hour(800)))
		require.Equal(t, hour(800), one.InForce(account).WithoutMargin)
		require.NotZero(t, one.changes)
		require.NoError(t, other.Refresh(t.Context()))
		require.Equal(t, hour(800), other.InForce(theirs).WithoutMargin)
		require.Len(t, other.overridden, 1)

		// What the operator says, the provider only lowers.
		time.Sleep(time.Hour)
		one.announce(t, account, 900)
		require.Equal(t, hour(800), one.InForce(account).WithoutMargin)
		one.announce(t, account, 700)
		require.Equal(t, hour(700), one.InForce(account).WithoutMargin)
		require.NoError(t, one.Restore(t.Context(), []*limits.Account{account}))
		require.Equal(t, hour(800), one.InForce(account).WithoutMargin)

		// A program with a higher revision comes before both.
		newer := newWorker(of, 1, hour(300)...)
		require.NoError(t, newer.Refresh(t.Context()))
		require.Equal(t, hour(300), newer.book(t, newer.account(t, "a")).WithoutMargin)
		require.NoError(t, other.Refresh(t.Context()))
		require.Equal(t, hour(300), other.book(t, other.account(t, "a")).WithoutMargin)

		require.Error(t, newer.Set(t.Context(), []limit.Limit{{Max: -1, Window: time.Hour}}))
	})
}

// What is learned is kept for as long as the store knows it, and can be taken back.
func TestWhatIsLearnedCanBeForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(new(memstore.Store), 0, limit.Limit{Max: 1000, Window: time.Hour})
		account := w.account(t, "a")
		w.book(t, account)
		w.announce(t, account, 20)
		require.True(t, w.InForce(account).Edition.Version > 0)
		require.True(t, w.Adopts.Load())
		w.Forget("a")
		require.False(t, w.InForce(account).Edition.Version > 0)
		require.NoError(t, w.RefreshCard(t.Context(), account))
		require.True(t, w.InForce(account).Edition.Version > 0, "the store has it still")

		// If nobody is served for long, one call tries whether the provider still says so.
		w.Doubt(w.InForce(account))
		require.Equal(t, 20, w.InForce(account).WithoutMargin[0].Max)
		time.Sleep(limits.DoubtAfter - time.Minute)
		for range 20 {
			w.book(t, w.InForce(account))
		}
		time.Sleep(2 * time.Minute)
		w.Doubt(w.InForce(account))
		require.Greater(t, w.InForce(account).WithoutMargin[0].Max, 20)
	})
}

// Refusals that the limits do not explain have a pace found beside them, which a request for more than its burst widens.
func TestRefusalsMakeAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(new(memstore.Store), 0, limit.Limit{Max: 6000, Window: time.Minute})
		account := w.account(t, "a")
		for i := range 400 {
			account = w.book(t, w.InForce(account))
			c := w.call(t, account)
			if c.Waited = true; i > 100 && i%4 == 0 {
				w.Refused(&provider.Feedback{Refused: true, Reason: provider.ReasonQuota}, c, "")
			} else {
				w.Served(c)
			}
			time.Sleep(20 * time.Millisecond)
		}
		kept, paced := w.InForce(account).Paced()
		require.True(t, paced)
		require.Less(t, kept.Max, 6000)
		require.NotEmpty(t, w.paced)
		require.Equal(t, 6000, w.InForce(account).WithoutMargin[0].Max, "the limits stay")
		require.Len(t, w.InForce(account).Limits, 2)

		list, err := w.List(w.Rules(), *account)
		require.NoError(t, err)
		require.True(t, w.WidenPace(list, 5000, nil))
		require.False(t, w.WidenPace(list, 5000, nil))

		// A refusal that is about an app or a part of the API says nothing of the account's rate.
		before := len(w.paced)
		w.Refused(&provider.Feedback{Refused: true, Reason: provider.ReasonQuota}, w.call(t, account), provider.ScopeApp)
		w.Refused(&provider.Feedback{Refused: true, Reason: provider.ReasonQuota}, w.call(t, account), provider.ScopeEndpoint)
		require.Len(t, w.paced, before)
	})
}

// Whatever a budget counts, a request is charged to its account, to the meters of its units and values, and to the shared accounts.
func TestWhatARequestIsCharged(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for range 200 {
		all := []limit.Limit{{Max: 1 + random.IntN(100), Window: time.Minute}}
		units, keys := []string{"tokens", "bytes"}[:random.IntN(3)], []string{"route", "user"}[:random.IntN(3)]
		for _, unit := range units {
			all = append(all, limit.Limit{Max: 1000, Window: time.Minute, Unit: unit})
		}
		for _, key := range keys {
			all = append(all, limit.Limit{Max: 10, Window: time.Hour, Per: key})
		}
		w := newWorker(new(memstore.Store), 0, all...)
		for i := range random.IntN(3) {
			w.Shared = append(w.Shared, store.Account{ID: fmt.Sprint("shared", i), Limits: []limit.Limit{{Max: 5, Window: time.Second}}})
		}
		list, err := w.List(w.Rules(), *w.account(t, "a"))
		require.NoError(t, err)

		want, has, said := make(map[string]int), make(map[string]int), make(map[string]string)
		cost := 1 + random.IntN(5)
		for _, unit := range units {
			has[unit] = 1 + random.IntN(50)
		}
		for _, key := range keys {
			said[key] = []string{"", "x", "a:b", "3:"}[random.IntN(4)]
		}
		if list.Keyed != nil {
			_, missing := list.Keyed.Values(nil)
			require.Equal(t, keys[0], missing)
			values, missing := list.Keyed.Values(said)
			require.Empty(t, missing)
			list, err = list.WithValues(values)
			require.NoError(t, err)
		}
		charged := make([]int, 0)
		if len(list.Meters) > 0 {
			charged, err = list.UnitsOf(has, cost, false)
			require.NoError(t, err)
		}
		for _, unit := range units {
			want[unit] = has[unit]
		}
		for _, key := range keys {
			if said[key] != "" {
				want[key+"="+said[key]] = cost
			}
		}
		for _, shared := range w.Shared {
			want[shared.ID] = cost
		}
		got := make(map[string]int)
		for i, o := range list.Beside("a", cost, charged) {
			name := o.Account.ID
			if i < len(list.Meters) {
				if name = list.Meters[i].Unit; name == "" {
					name = list.Meters[i].Label
				}
			}
			got[name] += o.Units
		}
		require.Equal(t, want, got)
		require.Equal(t, []string{"a"}, list.Without([]string{"b"}))
		require.Empty(t, list.Without([]string{"a"}))
		require.NotNil(t, list.Find("a"))
		require.Nil(t, list.Find("nobody"))
		require.Equal(t, len(list.Meters), len(list.MetersOfAll()))
		if len(units) > 0 {
			_, err = list.UnitsOf(nil, cost, false)
			require.ErrorContains(t, err, "WithUnits")
			_, err = list.UnitsOf(map[string]int{"sheep": 1}, cost, false)
			require.ErrorContains(t, err, "sheep")
		}
	}
}

// Values are told apart whatever they are, and too many of them are an error.
func TestValuesAreToldApart(t *testing.T) {
	w := newWorker(new(memstore.Store), 0, limit.Limit{Max: 10, Window: time.Minute}, limit.Limit{Max: 5, Window: time.Minute, Per: "route"})
	list, err := w.List(w.Rules(), *w.account(t, "a"))
	require.NoError(t, err)
	var ids []string
	for i := range 1100 {
		values, _ := list.Keyed.Values(map[string]string{"route": fmt.Sprint("/", i, ":\x00")})
		of, err := list.WithValues(values)
		if i >= 1000 {
			require.ErrorContains(t, err, "more than 1000 values of route")
			continue
		}
		require.NoError(t, err)
		again, err := list.WithValues(values)
		require.NoError(t, err)
		require.Same(t, of, again)
		ids = append(ids, of.Meter(0, "a").ID)
	}
	slices.Sort(ids)
	require.Len(t, slices.Compact(ids), 1000)
}

// Limits that the program gives an account in place of others are told to the store once.
func TestAnAccountGetsOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := new(memstore.Store)
		w := newWorker(of, 0, limit.Limit{Max: 1000, Window: time.Hour})
		own := func(n int) *limits.Account {
			account, err := w.NewAccount(w.Rules(), "a", "", []limit.Limit{{Max: n, Window: time.Hour}})
			require.NoError(t, err)
			return &account
		}
		w.book(t, own(50))
		list, err := w.List(w.Rules(), *own(70))
		require.NoError(t, err)
		r := store.BookRequest{ID: store.NewBookingID(), Budget: "b", Accounts: list.Accounts, Cost: 1, MaxWait: store.Forever}
		_, err = of.Book(t.Context(), r)
		require.Error(t, err, "two limits of one revision")
		require.False(t, w.IsOverridden(err, list), "nobody has said that they are others")
		w.Override(own(70))
		require.True(t, w.IsOverridden(err, list))
		require.Equal(t, 70, w.book(t, own(70)).WithoutMargin[0].Max)
		require.NoError(t, w.PutOverride(own(70)))
		require.True(t, w.KeepsLimits(own(70), own(70)))
	})
}

// A store that has lost an account's card gets it back, unless another worker has set the budget's limits meanwhile.
func TestALostCardIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorker(new(memstore.Store), 0, limit.Limit{Max: 1000, Window: time.Hour})
		account := w.account(t, "a")
		w.announce(t, account, 500)
		require.Equal(t, 500, w.InForce(account).WithoutMargin[0].Max)
		loses := func() *worker {
			w.of, w.state, w.lost = new(memstore.Store), fleet.State{}, true
			return newWorker(w.of, 0, limit.Limit{Max: 1000, Window: time.Hour})
		}
		other := loses()
		other.book(t, other.account(t, "a"))
		require.NoError(t, w.Refresh(t.Context()))
		require.Equal(t, 500, other.book(t, other.account(t, "a")).WithoutMargin[0].Max)

		other = loses()
		require.NoError(t, other.Set(t.Context(), []limit.Limit{{Max: 700, Window: time.Hour}}))
		other.book(t, other.account(t, "b"))
		require.NoError(t, w.Refresh(t.Context()))
		require.Equal(t, 700, w.InForce(account).WithoutMargin[0].Max)
	})
}

// So does one that has lost the budget's card, of which a limit of calls in flight has no margin.
func TestTheBudgetsLostCardIsGivenBack(t *testing.T) {
	all := []limit.Limit{{Max: 1000, Window: time.Hour}, {InFlight: 3}}
	w := newWorker(new(memstore.Store), 0, all...)
	require.NoError(t, w.Set(t.Context(), []limit.Limit{{Max: 700, Window: time.Hour}}))
	w.of, w.state, w.lost = new(memstore.Store), fleet.State{}, true
	require.NoError(t, w.Refresh(t.Context()))
	other := newWorker(w.of, 0, all...)
	require.NoError(t, other.Refresh(t.Context()))
	require.Equal(t, 700, other.book(t, other.account(t, "a")).WithoutMargin[0].Max)
	require.NoError(t, w.Set(t.Context(), []limit.Limit{{Max: 600, Window: time.Hour}, {InFlight: 2}}))
}

// Of accounts that nobody has learned anything about nothing is kept.
func TestABookingAloneIsNotKept(t *testing.T) {
	w := newWorker(new(memstore.Store), 0, limit.Limit{Max: 1000, Window: time.Hour})
	account := w.account(t, "a")
	booked, news := w.Adopt(account, store.Card{}, time.Now())
	require.Same(t, account, booked)
	require.False(t, news)
	require.Zero(t, testing.AllocsPerRun(100, func() { w.Adopt(account, store.Card{}, time.Now()) }))
}
