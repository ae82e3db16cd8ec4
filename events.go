package ration

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
)

// An Event is what an operator may want to know of a budget's store, limits or tokens.
// The budget has dealt with it already. [Budget.OnEvent] gets it.
type Event struct {
	// Budget is the budget's name.
	Budget string
	// Kind is what happened. It says which of the other fields are set.
	Kind EventKind
	// By is how far the store's clock stepped, for ClockStepped.
	By time.Duration
	// Count is a number of bookings that were recorded, for LogLost and StoreBack, or were not, for NotRecorded, or of
	// units that other clients have spent, for ExternalUsage, or of moments in which calls were refused, for PaceChanged.
	Count int
	// Err is the store's failure, for StoreDown and NotRecorded, or that of a token's source, for SourceFailed.
	Err error
	// Account is the ID of the account that the event is about. Empty: all.
	Account string
	// Ours are this worker's limits up to now; Theirs are the limits that the fleet applies
	// from now on. They are set for LimitsOverridden, with the margins added, and for
	// LimitLearned, LimitUnclear and PaceChanged, without the margins.
	Ours, Theirs []limit.Limit
	// Token is the ID of the token that the event is about. For TokenQuarantined Reason is why.
	Token  string
	Reason provider.Reason
	// Until is the end of the pause or the quarantine, or when there is room again, on the store's clock.
	Until time.Time
	// Key names the endpoint, the object or the scope that is paused, as workers do among
	// themselves: a word and a digest. Empty: the whole account is.
	Key string
	// Field is what ConfigDoubtful is about: "Budget.Margin", say.
	Field string
	// Host is that of HostNotNamed, as a URL has it.
	Host string
	// Cause says why there is a pause or a quarantine, and which worker told the fleet, or why limits
	// have a pace beside them. Empty: nobody said.
	Cause string
}

// An EventKind is what an [Event] is about.
type EventKind int

const (
	// StoreDown: the store does not answer any more.
	StoreDown EventKind = iota + 1
	// StoreBack: the store answers again, and has recorded what was sent meanwhile.
	StoreBack
	// LogLost: the store lost a log, and this process has recorded its bookings again.
	LogLost
	// ClockStepped: the store's clock was set, and the budget has corrected its slots.
	ClockStepped
	// LimitsOverridden: another worker has changed the limits, or was given others with a higher Revision. Without an
	// Account they are the budget's.
	LimitsOverridden
	// LimitLearned: the provider announced another limit, and the fleet adopts it; or, with a Cause,
	// a learned limit is raised for a call that finds out whether it is still true.
	LimitLearned
	// LimitUnclear: responses announce Count units in a window whose length they do not tell, and another
	// number than the only limit has. Nothing changes: the program has to say which is right. Or, with a Cause: what a response says of
	// a limit was not understood. Cause is [provider.Feedback.Unread], quoted: what in it looks like a limit or a wait. It comes once for each shape.
	LimitUnclear
	// ExternalUsage: other clients spend the account's quota, and the log now counts it.
	ExternalUsage
	// PaceChanged: the provider has refused calls that an account's limits (Ours) allow, in Count moments up to now, and the
	// fleet keeps to a pace (Theirs) beside them, which it found from what was served; or, without Theirs, to none any more.
	PaceChanged
	// TokenNeverServed: the provider has rejected a token for each of Count requests and was never
	// seen to accept it, without saying that it is invalid. Is it attached as the provider wants it?
	TokenNeverServed
	// TokenQuarantined: the provider rejected a token, and the fleet stops using it. Every worker
	// hears of it, and one that begins hears of what is in force, as of pauses.
	TokenQuarantined
	// Paused: an account, all accounts, an endpoint, an object or a scope is paused, because of a
	// response or by [Budget.Pause].
	Paused
	// QuotaSpent: an account has no room for another call of this worker's for a minute or longer, until
	// Until; Cause says for which limit, if that is known. It comes once, until QuotaBack: of limits with Per, once for each value.
	QuotaSpent
	// QuotaBack: an account of which QuotaSpent was told has room again.
	QuotaBack
	// Resumed: the pauses of an account or the quarantines of a token were ended before their
	// time, by [Budget.Resume] and the like, or because the provider served the token when it was
	// probed. Without Account and Token it is about all.
	Resumed
	// SourceFailed: the source of a token's secrets has failed (Err). It is asked again and again.
	SourceFailed
	// SourceBack: the source of a token's secrets has returned one again.
	SourceBack
	// OldLogFound: the store has a log of this budget that workers of an earlier version of
	// ration keep. Neither counts what is booked in the other.
	OldLogFound
	// HostNotNamed: requests to a Host that is not one of Transport.Hosts get no token, and count for nothing. It is told
	// once for each host.
	HostNotNamed
	// ConfigDoubtful: what a Field is set to can be used, and is most likely not what was meant; Cause says why. It is told once.
	ConfigDoubtful
	// WorkerFailing: the callers of another worker of the fleet get nothing, such as for a [LimitsError]; Cause names it and says why. Each worker
	// that is at work hears of it within ten seconds, once; of several that fail at the same time, of one at least.
	WorkerFailing
	// NotRecorded: Count bookings of an account, which the log lacks because it was lost, the store was down, or a request left
	// late, could not be recorded in it (Err). The other accounts were.
	NotRecorded
)

var eventKinds = [...]string{
	StoreDown: "StoreDown", StoreBack: "StoreBack", LogLost: "LogLost", ClockStepped: "ClockStepped",
	LimitsOverridden: "LimitsOverridden", LimitLearned: "LimitLearned", LimitUnclear: "LimitUnclear", ExternalUsage: "ExternalUsage",
	PaceChanged: "PaceChanged", TokenNeverServed: "TokenNeverServed", TokenQuarantined: "TokenQuarantined", Paused: "Paused", QuotaSpent: "QuotaSpent", QuotaBack: "QuotaBack",
	Resumed: "Resumed", SourceFailed: "SourceFailed", SourceBack: "SourceBack", OldLogFound: "OldLogFound",
	HostNotNamed: "HostNotNamed", ConfigDoubtful: "ConfigDoubtful", WorkerFailing: "WorkerFailing", NotRecorded: "NotRecorded",
}

// String returns the kind's name.
func (k EventKind) String() string {
	if k < StoreDown || int(k) >= len(eventKinds) {
		return "EventKind(" + strconv.Itoa(int(k)) + ")"
	}
	return eventKinds[k]
}

// String says what happened, in a line for a log.
func (e Event) String() string {
	return "budget " + e.Budget + ": " + e.text()
}

func (e Event) text() string {
	ours, theirs := limit.Join(e.Ours), limit.Join(e.Theirs)
	switch e.Kind {
	case StoreDown:
		return fmt.Sprintf("nothing is booked: %v", e.Err)
	case StoreBack:
		return fmt.Sprintf("the store answers again and has recorded %d bookings made meanwhile", e.Count)
	case LogLost:
		return fmt.Sprintf("the store lost a log and has recorded %d bookings again", e.Count)
	case ClockStepped:
		return fmt.Sprintf("the store's clock stepped by %v; slots are corrected", e.By)
	case LimitsOverridden:
		if e.Account == "" {
			return fmt.Sprintf("another worker has set the budget's limits: %s in place of %s", theirs, ours)
		}
		return fmt.Sprintf("account %s: this worker's limits are %s; the fleet uses %s, which are newer", e.Account, ours, theirs)
	case LimitLearned:
		if e.Cause != "" {
			return fmt.Sprintf("account %s: %s is used in place of %s: %s", e.Account, theirs, ours, e.Cause)
		}
		return fmt.Sprintf("account %s: the provider announced %s instead of %s", e.Account, theirs, ours)
	case LimitUnclear:
		if e.Cause != "" {
			return fmt.Sprintf("account %s: what a response says of a limit was not understood: a refusal's wait is found by trying, and what is no refusal goes to the caller; "+
				"\"ration explain\" reads this line, and a Provider can be told what it means: %s", e.Account, e.Cause)
		}
		return fmt.Sprintf("account %s: responses announce %d in a window whose length they do not tell, and %s is used: "+
			"if %d is of that window, give it, or a Provider whose WindowHeaders have the Length", e.Account, e.Count, ours, e.Count)
	case ExternalUsage:
		return fmt.Sprintf("account %s: other clients have spent %d units", e.Account, e.Count)
	case PaceChanged:
		if len(e.Theirs) == 0 {
			return fmt.Sprintf("account %s: no pace is kept to any more beside %s", e.Account, ours)
		}
		return fmt.Sprintf("account %s: %s; a pace of %s is kept to beside %s: give the limits that fit", e.Account, e.Cause, pace.Text(e.Theirs[0]), ours)
	case TokenNeverServed:
		return fmt.Sprintf("token %s was rejected for %d requests and never served: is it attached as the provider wants it (Transport.Attach)?",
			e.Token, e.Count)
	case TokenQuarantined:
		return fmt.Sprintf("token %s is quarantined until %s: %s%s", e.Token, e.Until.UTC().Format(time.RFC3339), e.Reason, e.because())
	case Paused:
		what := "account " + e.Account
		if e.Account == "" {
			what = "all accounts"
		}
		if e.Key != "" {
			what = cooldown.Key(e.Key).String() + " of " + what
		}
		return fmt.Sprintf("%s: paused until %s%s", what, e.Until.UTC().Format(time.RFC3339), e.because())
	case QuotaSpent:
		return fmt.Sprintf("account %s: %s, and has room again at %s", e.Account, e.Cause, e.Until.UTC().Format(time.RFC3339))
	case QuotaBack:
		return fmt.Sprintf("account %s has room again", e.Account)
	case Resumed:
		switch {
		case e.Account == "" && e.Token == "":
			return "all pauses and quarantines were ended"
		case e.Account == "":
			return fmt.Sprintf("token %s is used again", e.Token)
		}
		return fmt.Sprintf("the pauses of account %s were ended", e.Account)
	case SourceFailed:
		return fmt.Sprintf("the source of token %s gave no secret: %v", e.Token, e.Err)
	case SourceBack:
		return fmt.Sprintf("the source of token %s gives secrets again", e.Token)
	case OldLogFound:
		return "workers of an earlier version of ration have booked in a log that this one does not count: stop them, " +
			"and see \"From ration:v1\" in docs/reference/keys.md"
	case NotRecorded:
		return fmt.Sprintf("account %s: %d bookings that its log lacks could not be recorded, and may be spent again: %v", e.Account, e.Count, e.Err)
	case ConfigDoubtful:
		return e.Field + ": " + e.Cause
	case WorkerFailing:
		return "callers get nothing in " + e.Cause
	case HostNotNamed:
		return fmt.Sprintf("requests to %s get no token, and no limit counts them: name it in Transport.Hosts if it is the API's", e.Host)
	}
	return e.Kind.String()
}

func (e Event) because() string {
	if e.Cause == "" {
		return ""
	}
	return ": " + e.Cause
}

// LogValue returns what the fields say, for log/slog.
func (e Event) LogValue() slog.Value {
	all := []slog.Attr{slog.String("event", e.Kind.String()), slog.String("budget", e.Budget)}
	for _, s := range [...]struct{ name, value string }{
		{"account", e.Account}, {"token", e.Token}, {"key", e.Key}, {"reason", string(e.Reason)}, {"field", e.Field}, {"host", e.Host}, {"cause", e.Cause},
	} {
		if s.value != "" {
			all = append(all, slog.String(s.name, s.value))
		}
	}
	if !e.Until.IsZero() {
		all = append(all, slog.Time("until", e.Until))
	}
	if e.Err != nil {
		all = append(all, slog.Any("error", e.Err))
	}
	return slog.GroupValue(all...)
}

// level is the level at which an event is logged: what costs the crawl something is a warning, and
// what somebody must do something about an error.
func (k EventKind) level() slog.Level {
	switch k {
	case StoreDown, OldLogFound, TokenNeverServed, WorkerFailing, NotRecorded:
		return slog.LevelError
	case LogLost, ClockStepped, LimitsOverridden, LimitUnclear, TokenQuarantined, Paused, SourceFailed, HostNotNamed, PaceChanged, ConfigDoubtful:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// untold are events of which nobody was told yet.
type untold struct {
	mu  sync.Mutex // taken last
	all []Event
}

// emit adds an event to those that tell tells of next. The caller may hold any lock, or have begun what others wait for: OnEvent,
// which is the user's code, would wait for itself if it asked the budget.
func (b *Budget) emit(e Event) {
	b.untold.mu.Lock()
	defer b.untold.mu.Unlock()
	b.untold.all = append(b.untold.all, e)
}

// tell logs what was emitted, and then these events, and calls OnEvent. The caller must hold no lock, and nobody wait for it.
func (b *Budget) tell(more ...Event) {
	b.untold.mu.Lock()
	all := append(b.untold.all, more...)
	b.untold.all = nil
	b.untold.mu.Unlock()
	for _, e := range all {
		b.notify(e)
	}
}

// notify logs an event and calls OnEvent.
func (b *Budget) notify(e Event) {
	e.Budget = b.Name
	if b.Logger != nil && (e.Kind.level() == slog.LevelError || b.recentLines.isLine(e, b.logMore)) {
		logLine(b.Logger, e, "")
	}
	if b.OnEvent != nil {
		b.OnEvent(e)
	}
}

// logLine writes a line of an event.
func logLine(to *slog.Logger, e Event, more string) {
	said := e
	if e.Kind == Paused || e.Kind == TokenQuarantined {
		said.Cause = "" // it is a field, and may be long
	}
	to.LogAttrs(context.Background(), e.Kind.level(), more+said.String(), e.LogValue().Group()...)
}

// logMore writes a line of so many events, of which the last is told.
func (b *Budget) logMore(last Event, count int) {
	more := ""
	if count > 1 {
		more = fmt.Sprintf("%d more %v within %v, the last: ", count, last.Kind, linesWithin)
	}
	logLine(b.Logger, last, more)
}

// The same news of many accounts are some lines of a log, and then one that counts the rest: what refuses a thousand accounts would
// otherwise be a thousand lines in every process. OnEvent is told of each.
const (
	mostLines   = 5
	linesWithin = 10 * time.Second
)

// A recentLines is which events were logged a moment ago, by their kind.
type recentLines struct {
	mu    sync.Mutex // protects all
	kinds [len(eventKinds)]struct {
		began   time.Time // of the time in which events are counted
		written int
		held    int // that are counted, and not written
		last    Event
	}
}

// isLine reports whether an event has a line of its own. Otherwise more is called soon, with the last such event and how many there were.
func (l *recentLines) isLine(e Event, more func(last Event, count int)) bool {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	k := &l.kinds[e.Kind]
	if now.Sub(k.began) >= linesWithin && k.held == 0 {
		k.began, k.written = now, 0
	}
	if k.written < mostLines {
		k.written++
		return true
	}
	if k.held++; k.held == 1 {
		time.AfterFunc(max(0, k.began.Add(linesWithin).Sub(now)), func() {
			l.mu.Lock()
			last, count := k.last, k.held
			k.held, k.last, k.began, k.written = 0, Event{}, time.Now(), 1
			l.mu.Unlock()
			more(last, count)
		})
	}
	k.last = e
	return false
}

// mostTold is how much is told once.
const mostTold = 100

// told is what people were told, and are not again.
type told struct {
	mu  sync.Mutex // protects all
	all map[string]bool
}

// isNews reports whether nobody was told of something, who is told now. Beyond mostTold nobody is.
func (o *told) isNews(what string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all[what] || len(o.all) >= mostTold {
		return false
	}
	if o.all == nil {
		o.all = make(map[string]bool)
	}
	o.all[what] = true
	return true
}
