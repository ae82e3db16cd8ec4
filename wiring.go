package ration

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ration-go/ration/internal/durable"
	"github.com/ration-go/ration/internal/fleet"
	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// What a budget knows is kept by owners that do not know each other, each with a lock of its own:
//
//	durable   package durable   what asks the store: where its clock stands, what is booked, outages
//	fleet     package fleet     what the fleet has decided: pauses, quarantines, resumptions
//	keeper    package limits    which limits are in force, and what requests are charged to
//	lines     line.go           the callers that wait
//
// A Budget is a literal, so they are put together when its fields are first found to be right: by check, which whoever makes a list
// of accounts has called.

// wire gives each owner what it needs of the others.
func (b *Budget) wire() {
	s, f := &b.durable, &b.fleet
	s.Of, s.Budget, s.Owner, s.Refresh = b.Store, b.Name, wired{b}, f.Refresh
	s.Local = !b.Store.At(time.Now()).IsZero()
	s.Clock.Learned.Store(s.Local)
	s.Closed, s.Traced, s.Worker = b.Outage == FailClosed, b.Trace != nil && b.Trace.StoreAsked != nil, durable.NewWorker()

	k := &b.keeper
	k.Budget, k.Limits, k.Revision, k.Margin = b.Name, b.Limits, b.Revision, b.Margin
	k.Shared = make([]store.Account, len(b.Shared))
	for i, one := range b.Shared {
		k.Shared[i] = one.Account
	}
	k.Store, k.Fleet, k.Owner, k.InFlight, k.Worker = s, f, wired{b}, &b.inFlight, workerName()

	b.lines.permits.Owner = inFlight{b}
	f.Budget, f.Store, f.Local, f.Owner, f.Lines = b.Name, s, s.Local, wired{b}, &b.lines
	b.wired.Store(true)
	b.warnOfMargins("Budget.Limits", b.Limits)
}

// wired is a budget as what it consists of sees it.
type wired struct{ b *Budget }

// Asked implements durable.Owner.
func (o wired) Asked(ctx context.Context, operation string, took time.Duration, err error) {
	o.b.Trace.StoreAsked(ctx, rationtrace.StoreAsked{Budget: o.b.Name, Operation: operation, Took: took, Err: err})
}

// Failed implements durable.Owner.
func (o wired) Failed(err error) { o.b.emit(Event{Kind: StoreDown, Err: err}) }

// Recovered implements durable.Owner.
func (o wired) Recovered(recorded int) { o.b.emit(Event{Kind: StoreBack, Count: recorded}) }

// Lost implements durable.Owner.
func (o wired) Lost(recorded int) { o.b.emit(Event{Kind: LogLost, Count: recorded}) }

// NotRecorded implements durable.Owner.
func (o wired) NotRecorded(account string, count int, err error) {
	o.b.emit(Event{Kind: NotRecorded, Account: account, Count: count, Err: err})
}

// Telling implements fleet.Owner.
func (o wired) Telling() (changed, again bool) { return o.b.told.compare(o.b) }

// Tell implements fleet.Owner.
func (o wired) Tell() { o.b.tell() }

// newsFor is how long after a resumption a process that hears of it says so in an event: one that
// has just begun hears of those of a day.
const newsFor = time.Minute

// Told implements fleet.Owner.
func (o wired) Told(news fleet.News) {
	b := o.b
	if news.OldLog {
		b.emit(Event{Kind: OldLogFound})
	}
	if news.Evicts != "" {
		b.warn("RedisStore.Client", "this Redis throws keys away when its memory is full (maxmemory-policy %s), and with a log calls are booked twice: set noeviction", news.Evicts)
	}
	for _, r := range news.Resumed {
		if r.Forgotten {
			b.durable.Journal.Forget(r.Account)
			b.keeper.Forget(r.Account)
		}
		if b.durable.Now().Sub(r.At) < newsFor {
			b.emit(Event{Kind: Resumed, Account: r.Account, Token: r.Token})
		}
	}
	for _, p := range news.Paused {
		b.emit(Event{Kind: Paused, Account: p.Account, Key: p.Key, Until: p.Until, Cause: p.Cause})
	}
	for _, q := range news.Quarantined {
		of, _ := b.pooled.Load(q.Token)
		account, _ := of.(string) // or the token is in no pool
		b.emit(Event{Kind: TokenQuarantined, Account: account, Token: q.Token, Reason: provider.Reason(q.Reason), Until: q.Until, Cause: q.Cause})
	}
}

// Status implements fleet.Owner.
func (o wired) Status(ctx context.Context, known int64) (status store.Status, limits bool, err error) {
	b, r := o.b, store.StatusRequest{Known: known}
	room := &b.lines.permits
	if room.Any.Load() {
		r.Permits = room.Requests()
	}
	if !b.durable.Local || r.Permits != nil {
		r.Worker, r.Load = b.nameInStore(), b.load()
	}
	if b.leaving.Load() && len(r.Load.Waiting) == 0 && r.Load.InFlight == 0 && r.Worker != "" {
		r.Leaves, r.Permits = true, nil
	}
	asked, rules := time.Now(), b.keeper.Rules()
	status, lost, again, err := b.durable.Status(ctx, r)
	if err != nil {
		return status, false, err
	}
	if !r.Leaves && r.Worker != "" {
		b.told.note(r.Load, asked)
		b.fleet.KeepTelling()
	}
	if len(status.Permits) > 0 {
		room.Told(status.Permits, asked)
	}
	if f := &status.Failing; f.Worker != "" && f.Worker != r.Worker && b.failed.isNews(f.Worker) {
		b.emit(Event{Kind: WorkerFailing, Cause: "worker " + f.Worker + ": " + f.Error})
	}
	if again > 0 {
		time.AfterFunc(time.Second, func() { _ = b.fleet.Refresh(context.WithoutCancel(ctx)) }) // which tells people of it
	}

	if err := b.keeper.AgreeOnCards(ctx, rules, &status, lost); err != nil {
		return status, false, err
	}
	if status.Card.Version > 0 || len(status.Cards) > 0 {
		limits = b.keeper.NoteStatus(&status, asked)
	}
	if lost {
		b.durable.Recovered(status.Lost)
	}
	return status, limits, nil
}

// Overridden implements limits.Owner.
func (o wired) Overridden(account string, ours, theirs []limit.Limit) {
	o.b.emit(Event{Kind: LimitsOverridden, Account: account, Ours: ours, Theirs: theirs})
}

// Learned implements limits.Owner.
func (o wired) Learned(account string, ours, theirs []limit.Limit, cause string) {
	o.b.emit(Event{Kind: LimitLearned, Account: account, Ours: ours, Theirs: theirs, Cause: cause})
}

// Unclear implements limits.Owner.
func (o wired) Unclear(account string, announced int, ours []limit.Limit) {
	o.b.emit(Event{Kind: LimitUnclear, Account: account, Count: announced, Ours: ours})
}

// External implements limits.Owner.
func (o wired) External(account string, units int) {
	o.b.emit(Event{Kind: ExternalUsage, Account: account, Count: units})
}

// Paced implements limits.Owner.
func (o wired) Paced(account string, ours, pace []limit.Limit, refusals int) {
	e := Event{Kind: PaceChanged, Account: account, Ours: ours, Theirs: pace}
	if len(pace) > 0 {
		e.Count, e.Cause = refusals, "the provider refuses calls that the limits allow"
	}
	o.b.emit(e)
}

// Waiting implements limits.Owner.
func (o wired) Waiting() []*limits.Account { return o.b.lines.accounts() }

// workerName names this process to people.
var workerName = sync.OnceValue(func() string {
	return fmt.Sprintf("%.100s, process %d", cmp.Or(hostName(), "a worker"), os.Getpid())
})

// hostName returns the name of this machine; empty: nobody knows.
var hostName = sync.OnceValue(func() string {
	host, _ := os.Hostname()
	return strings.ToValidUTF8(host, "")
})

// nameInStore returns what this worker is called in the store: its host, in at most 40 letters, digits,
// dots and dashes, its process, and of several budget values in a process which one.
func (b *Budget) nameInStore() string {
	host := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return -1
	}, hostName())
	id := b.durable.Worker
	return fmt.Sprintf("%s:%d:%x", cmp.Or(host[:min(len(host), 40)], "unknown"), os.Getpid(), id[:3])
}
