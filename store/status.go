package store

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ration-go/ration/limit"
)

// A PauseRequest pauses an account, or all of them, or a part of what is asked of the
// provider.
type PauseRequest struct {
	// Budget is the budget's name.
	Budget string
	// Account is the account's ID. Empty: every account of the budget.
	Account string
	// Key names the part that is paused: an endpoint, an object or a scope, as the
	// callers of the budget agree. It is 1 to 64 letters and digits. Empty: the whole
	// account.
	Key string
	// For is how long from now, from a microsecond to 366 days. With Replaces it may be zero: the pause ends now, and stays known.
	For time.Duration
	// SlowStart is how long a step of the slow start takes behind the pause, which has [SlowStartSteps], so that what comes back does
	// not come at once. It is of all slots of the account or, if Account is empty, of all accounts, that are booked until it is over:
	// the first puts off the next one by a step, and one in the n-th step, from 0, by SlowStart / 2^n, in whole microseconds. So
	// there is one in the first step, then two, four, eight. One that a limit puts off further puts off no later one,
	// and one that is cancelled is not given again. A pause that begins when another is over begins anew. With a Key, which moves no slot, it is for the callers to keep to. At most 24 h.
	// Zero: limits decide.
	SlowStart time.Duration
	// Row is how often it was paused in a row, as the callers count, from 0 to 1,000, and Kind what kind of pause it is. Status tells both.
	Row int
	// Kind is what the callers agree on.
	Kind PauseKind
	// Replaces is the Until of the last pause of the same, in force or over, which this one replaces. If that ends, or ended, at
	// another instant, or is not known, nothing changes: so of several callers one replaces it. Zero: a pause only
	// lengthens.
	Replaces time.Time
	// Cause tells people in a line the reason, and which program asks: at most 500 bytes of text, without any
	// secret. Status tells it while the pause lasts. Empty: nothing is told.
	Cause string
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Pause returns the pause that a request makes which ends then.
func (r PauseRequest) Pause(until time.Time) Pause {
	return Pause{Account: r.Account, Key: r.Key, Until: until, SlowStart: r.SlowStart, Row: r.Row, Kind: r.Kind, Cause: r.Cause}
}

// SlowStartSteps is how many steps the slow start behind a pause has. In the last some 2,000 slots come.
const SlowStartSteps = 12

// A PauseKind says what a pause is. It moves slots alike whatever it is.
type PauseKind uint8

const (
	// PauseCooldown is after a refusal.
	PauseCooldown PauseKind = iota
	// PauseSpent lasts for as long as the provider says that a window has nothing left, which refuses nobody.
	PauseSpent
	// PauseProbed lasts while one request of the fleet tries whether what was paused is served again.
	PauseProbed
	// PauseServed has ended because it was: its callers leave by a slow start.
	PauseServed
)

// Validate returns why the request is malformed, or nil.
func (r PauseRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case r.Account != "" && !ValidAccountID(r.Account):
		return fmt.Errorf("ration: account ID %q: it must be 1 to 64 letters, digits, '-' and '_', or empty for all", r.Account)
	case r.Key != "" && !validKey(r.Key):
		return fmt.Errorf("ration: PauseRequest.Key is %q: it must be 1 to 64 letters and digits, or empty", r.Key)
	case r.SlowStart < 0 || r.SlowStart > limit.MaxMargin:
		return fmt.Errorf("ration: PauseRequest.SlowStart is %v: it must be from 0 to %v", r.SlowStart, limit.MaxMargin)
	case r.Row < 0 || r.Row > 1000:
		return fmt.Errorf("ration: PauseRequest.Row is %d: it must be from 0 to 1,000", r.Row)
	case r.Kind > PauseServed:
		return fmt.Errorf("ration: PauseRequest.Kind is %d: it must be from %d to %d", r.Kind, PauseCooldown, PauseServed)
	}
	if err := validateNow(r.Replaces); err != nil {
		return err
	}
	return validatePause(replacing(r.For, r.Replaces), r.Cause, r.Now)
}

// A QuarantineRequest notes that a token is of no use for a while.
type QuarantineRequest struct {
	// Budget is the budget's name.
	Budget string
	// Token is the token's ID, never the token: 1 to 64 letters, digits, '-' and '_'.
	Token string
	// Reason is why, in the same characters.
	Reason string
	// For is how long from now, from a microsecond to 366 days. With Replaces it may be zero:
	// the quarantine ends now, and stays known.
	For time.Duration
	// Count is how often the token was quarantined in a row, as the callers count, from 0 to
	// 1,000,000, and Probing that one request tries the token just now. Status tells both.
	Count   int
	Probing bool
	// Replaces is the Until of the token's last quarantine for that reason, in force or over,
	// which this one replaces, also by a shorter one. If that ends, or ended, at another
	// instant, or is not known, nothing changes: so of several callers one replaces it. Zero: a
	// quarantine only lengthens.
	Replaces time.Time
	// Cause is as that of a [PauseRequest].
	Cause string
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Validate returns why the request is malformed, or nil.
func (r QuarantineRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case !ValidAccountID(r.Token):
		return fmt.Errorf("ration: token ID %q: it must be 1 to 64 letters, digits, '-' and '_'", r.Token[:min(len(r.Token), 64)])
	case !ValidAccountID(r.Reason):
		return fmt.Errorf("ration: QuarantineRequest.Reason is %q: it must be 1 to 64 letters, digits, '-' and '_'", r.Reason)
	case r.Count < 0 || r.Count > 1_000_000:
		return fmt.Errorf("ration: QuarantineRequest.Count is %d: it must be from 0 to 1,000,000", r.Count)
	}
	if err := validateNow(r.Replaces); err != nil {
		return err
	}
	return validatePause(replacing(r.For, r.Replaces), r.Cause, r.Now)
}

// replacing returns the length, or the least there is if it is zero and may be, since something is replaced.
func replacing(length time.Duration, replaced time.Time) time.Duration {
	if length == 0 && !replaced.IsZero() {
		return time.Microsecond
	}
	return length
}

func validatePause(length time.Duration, cause string, now time.Time) error {
	if len(cause) > 500 || !utf8.ValidString(cause) || strings.ContainsFunc(cause, unicode.IsControl) {
		return fmt.Errorf("ration: the Cause has %d bytes: it must be one line of text of at most 500", len(cause))
	}
	if length < time.Microsecond || length > limit.MaxWindow {
		return fmt.Errorf("ration: the pause is %v: it must be from %v to %v", length, time.Microsecond, limit.MaxWindow)
	}
	return validateNow(now)
}

func validKey(key string) bool { return ValidAccountID(key) && !strings.ContainsAny(key, "-_") }

// A ResumeRequest ends pauses and quarantines before their time.
type ResumeRequest struct {
	// Budget is the budget's name.
	Budget string
	// Account is the ID of the account whose pauses end, those with a Key included. Empty: no
	// account's.
	Account string
	// Token is the ID of the token whose quarantines end. Empty: no token's.
	//
	// If both are empty all pauses and quarantines of the budget end.
	Token string
	// Forget has the store forget what is kept of the Account as well: what was booked and
	// recorded, and its limits. The next booking finds an account that was never booked.
	// Bookings that wait are not in the log any more.
	Forget bool
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Validate returns why the request is malformed, or nil.
func (r ResumeRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	switch {
	case r.Account != "" && !ValidAccountID(r.Account):
		return fmt.Errorf("ration: account ID %q: it must be 1 to 64 letters, digits, '-' and '_', or empty", r.Account)
	case r.Token != "" && !ValidAccountID(r.Token):
		return fmt.Errorf("ration: token ID %q: it must be 1 to 64 letters, digits, '-' and '_', or empty", r.Token[:min(len(r.Token), 64)])
	case r.Forget && r.Account == "":
		return errors.New("ration: ResumeRequest.Forget needs an Account")
	}
	return validateNow(r.Now)
}

// A Resumption tells which pauses and quarantines were ended before their time. One of no
// account and no token ended all.
type Resumption struct {
	// Account, Token and Forgotten are as in the [ResumeRequest].
	Account, Token string
	Forgotten      bool
	// At is when, on the store's clock.
	At time.Time
}

// A PauseReply answers a PauseRequest, a QuarantineRequest or a ResumeRequest.
type PauseReply struct {
	// Until is the end of the pause in force, on the store's clock. It is later than
	// what was asked for if a longer one was in force. If pauses were ended it is when.
	Until time.Time
	// Version is that of the budget's Status after the request, and Before that before
	// it. A caller whose Status is of the version Before knows all that there is to
	// know of the version Version: this request is what they differ in.
	Version, Before int64
}

// A StatusRequest asks for a budget's Status.
type StatusRequest struct {
	// Budget is the budget's name.
	Budget string
	// Worker names the process that asks: it then counts as a worker for a
	// minute. Empty: it does not. A store whose answers a caller waits for makes a new budget, with its Version, for the
	// first worker that asks: if the first booking did, its caller would have to ask for the Status before it leaves.
	Worker string
	// Leaves says that the worker has ended: it counts no more, a Description does not tell of it, and its permits are others'. One
	// that asks again is a worker again. Without a Worker it is ignored, and with it there are no Permits.
	Leaves bool
	// Load is what the worker's callers do now, which a [Worker] of a [Description] tells. Without a Worker it is ignored.
	Load Load
	// Permits are what the worker says of its calls in flight. Without a Worker there are none.
	Permits []PermitRequest
	// Known is the Version of the Status that the caller has, if it needs only what has
	// changed since: see [Status.Since]. Zero: it has none, and needs all.
	Known int64
	// Now stands for the store's clock. Zero: the store's clock.
	Now time.Time
}

// Validate returns why the request is malformed, or nil.
func (r StatusRequest) Validate() error {
	if err := ValidateBudgetName(r.Budget); err != nil {
		return err
	}
	if len(r.Worker) > 64 {
		return fmt.Errorf("ration: StatusRequest.Worker has %d bytes: at most 64 are allowed", len(r.Worker))
	}
	if len(r.Load.Waiting) > 32 {
		return fmt.Errorf("ration: StatusRequest.Load has callers that wait for %d reasons: at most 32 are allowed", len(r.Load.Waiting))
	}
	if len(r.Permits) > MaxPermitRequests || len(r.Permits) > 0 && (r.Worker == "" || r.Leaves) {
		return fmt.Errorf("ration: StatusRequest.Permits has %d requests of worker %q: at most %d are allowed, and none without a worker, or of one that leaves", len(r.Permits), r.Worker, MaxPermitRequests)
	}
	for i := range r.Permits {
		if err := r.Permits[i].validate(); err != nil {
			return err
		}
	}
	if r.Known < 0 {
		return fmt.Errorf("ration: StatusRequest.Known is %d: it must not be negative", r.Known)
	}
	return validateNow(r.Now)
}

// Status is what a budget's callers must know beside their own bookings.
type Status struct {
	// Now is the store's clock when it answered.
	Now time.Time
	// Version grows with every pause, quarantine, resumption and loss, and with every new
	// Revision and Card. It is never less than the microseconds of the store's clock when it grew.
	Version int64
	// Lost is when a log was last found missing, or the budget was new: what
	// was booked before may be in no log. Zero: never.
	Lost time.Time
	// Revision is the highest that limits were booked with.
	Revision int
	// Card is the budget's, which has the limits of accounts without limits of their own. Zero: there is none.
	Card Card
	// NewestCard is the Version of the newest card of any account. Zero: there is none.
	NewestCard int64
	// Workers is how many processes named themselves in the last minute. A store that
	// only one process can use need not count: 0.
	Workers int
	// Since is the request's Known if Pauses, Quarantined, Resumed and Cards are only those that were
	// made or changed after that version, also if they are over. Zero: they are all that are in
	// force, and all resumptions. A store answers with
	// all if it never had that version or has lost something since, and it may always.
	Since int64
	// More reports whether there are more of them, which changed later: Version is then
	// that of the last one that is told, and a request with this Version as Known tells the
	// next. A store answers so if there are too many for one step.
	More bool
	// OldLog reports, if the request's Known is zero, whether the store has another log of the
	// budget, of workers that run an earlier version of the store: neither counts what is
	// booked in the other.
	OldLog bool
	// Evicts names, if the request's Known is zero, how the store chooses what it forgets when its memory is full: "allkeys-lru", say. Empty:
	// it forgets nothing, or does not know.
	Evicts string
	// Failing is the worker that was last heard to fail, within the last minute. Zero: none was, or the store keeps none.
	Failing FailingWorker
	// Pauses are those in force, in any order.
	Pauses []Pause
	// Quarantined are the quarantines in force, in any order: one for each token and
	// reason.
	Quarantined []Quarantine
	// Cards are the cards of accounts that were changed after Since, within the last day. If Since is zero there are none. A store
	// need not tell them: if NewestCard has grown, and no card has that version, callers ask for the card of each account for
	// which they wait.
	Cards []AccountCard
	// Permits are what the worker may use from now on, in the order of its requests.
	Permits []Permits
	// Resumed are the resumptions of the last day, in the order in which they were made; of one
	// account or token the last one. They ended none of Pauses and Quarantined, which are in force.
	Resumed []Resumption
}

// A FailingWorker is one whose callers get nothing: see [Process.Error].
type FailingWorker struct {
	// Worker is the name that it gave itself, and Error why.
	Worker, Error string
	// At is when it said so, on the store's clock.
	At time.Time
}

// An AccountCard is the card of an account, with its Why.
type AccountCard struct {
	// Account is the account's ID.
	Account string
	// Card is the one that is in force.
	Card Card
}

// A Pause is a pause in force.
type Pause struct {
	// Account and Key say what is paused, as in a [PauseRequest].
	Account, Key string
	// Until is its end, on the store's clock.
	Until time.Time
	// SlowStart, Row and Kind are as in the request that made it.
	SlowStart time.Duration
	Row       int
	Kind      PauseKind
	// Cause says why, if the request did.
	Cause string
}

// A Quarantine is a token that is of no use for a while.
type Quarantine struct {
	// Token and Reason are those of the [QuarantineRequest].
	Token, Reason string
	// Until is the end of the quarantine, on the store's clock.
	Until time.Time
	// Count and Probing are those of the request.
	Count   int
	Probing bool
	// Cause says why, if the request did.
	Cause string
}
