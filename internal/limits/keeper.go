// Package limits knows which limits of an account are in force: what the program says, what an operator has set, what the provider has
// announced or refused; and what a request is charged to.
//
//	program's limits ─┐
//	operator's card  ─┼─▶ effective limits of an account, by their edition ──▶ List ──▶ a booking
//	account's card   ─┘          ▲
//	                             └── responses: announcements, counts, refusals (packages observe and pace)
package limits

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// An Owner is whose limits they are. Its methods must not block, nor call the Keeper; people hear of what they are told with Tell, which is
// called when nobody waits for the caller.
type Owner interface {
	// Overridden is told that the fleet has other limits of an account; of the empty ID: of the budget.
	Overridden(account string, ours, theirs []limit.Limit)
	// Learned is told that a limit is used that the provider has announced, or why another one is.
	Learned(account string, ours, theirs []limit.Limit, cause string)
	// Unclear is told of a number that is announced of a window whose length is not.
	Unclear(account string, announced int, ours []limit.Limit)
	// External is told of units that other clients have spent.
	External(account string, units int)
	// Paced is told that a pace is kept to beside the limits, after so many refusals; nil: that none is any more.
	Paced(account string, ours, pace []limit.Limit, refusals int)
	// Tell tells people.
	Tell()
	// Waiting returns the accounts that the slots are of for which callers wait.
	Waiting() []*Account
}

// A Store is what a Keeper asks, as the methods of [store.Store] do.
type Store interface {
	// Now returns the store's clock.
	Now() time.Time
	// Soon returns a context for a short question, which is asked also if the caller has given up.
	Soon(ctx context.Context) (context.Context, context.CancelFunc)
	// Card asks for a card, or has it changed.
	Card(ctx context.Context, r store.CardRequest) (store.CardReply, error)
	// Usage asks what is used of accounts.
	Usage(ctx context.Context, accounts *store.Accounts) ([]store.Usage, error)
	// Reset tells when a window ends.
	Reset(ctx context.Context, r store.ResetRequest) error
	// Reconcile tells what the provider has counted.
	Reconcile(ctx context.Context, r store.ReconcileRequest) (store.Reconciliation, error)
}

// A Fleet is what a Keeper knows of the others.
type Fleet interface {
	// State returns what the fleet has decided.
	State() *fleet.State
	// LimitsChanged says that limits have changed: waiting callers look at their slots.
	LimitsChanged()
	// Refresh asks for what has changed.
	Refresh(ctx context.Context) error
}

// A Keeper keeps the limits of a budget's accounts. Set the fields before first use; it is then safe for concurrent use.
type Keeper struct {
	// Budget is the name in the store.
	Budget string
	// Limits are the budget's, of calls and other units, and Revision is their number.
	Limits   []limit.Limit
	Revision int // see Limits
	// Worker is what people call this worker: cards have it, for them.
	Worker string
	// Margin is the budget's. Zero: each limit has its default. Negative: none.
	Margin time.Duration
	// Shared are the accounts that every request is charged to beside its own.
	Shared []store.Account
	// Store, Fleet and Owner are what it asks and tells.
	Store Store
	Fleet Fleet
	Owner Owner
	// InFlight is how many requests have no response yet.
	InFlight *atomic.Int64
	// Adopts is whether any account may have a card. It is to be read only.
	Adopts atomic.Bool

	rules  atomic.Pointer[Rules] // nil: Limits and Revision, not read yet
	asking flight.Group

	mu      sync.Mutex                         // protects all below
	learned sweep.Map[string, *learnedAccount] // by account
}
