// Package fleet is what the workers of a budget have decided together, as one of them knows it: who is paused, which tokens are
// quarantined, what was resumed, and how many workers there are.
//
//	store ──Status──▶ change.status(State) ──▶ another State, and News
//	  │                                            │        └─▶ Owner.Told: events, and what others must follow
//	  └─Watch──▶ Mirror.hear ──▶ Refresh           └─▶ callers compare it with the one that they have booked under
//
// A pause must also hold back callers in other processes that have booked before it and are asleep. The answer to every booking carries
// the version of the status, and a caller whose slot has come has it asked for if it was not confirmed within ConfirmAfter. While
// callers wait, a store that can (Store.Watch) says as well when there is a new version.
package fleet

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/flight"
	"github.com/ration-go/ration/internal/watch"
	"github.com/ration-go/ration/store"
)

const (
	// ConfirmAfter is how old the known status may be when a slot has come.
	ConfirmAfter = time.Second
	// Heartbeat is how often a worker tells the store that it is there: workers that have to divide count each other, and operators
	// want to see them.
	Heartbeat = 10 * time.Second
	// lookEvery is how often a worker looks whether its callers do something else than the store was told.
	lookEvery = 900 * time.Millisecond
)

// An Owner is whose Mirror it is.
type Owner interface {
	// Status asks the store for what has changed since a version, and takes in all that is not of the fleet: where the clock stands,
	// what was lost, and cards. It reports whether the limits of any account are others now.
	Status(ctx context.Context, known int64) (status store.Status, limits bool, err error)
	// Telling reports whether the store is to be told at once what the callers of this worker do, and whether they do something, or did
	// when it was told last: so that it is told sooner or later.
	Telling() (changed, again bool)
	// Told is told what has changed, in that order. It must not block, nor call the Mirror, nor take a lock under which that is called.
	Told(News)
	// Tell tells people. It is called when nobody waits for the caller.
	Tell()
}

// Lines are where callers wait for slots.
type Lines interface {
	// Review has waiting callers look at their slots.
	Review()
	// Freed tells news of an account of which slots were given back, or units of what has left are free; of the zero News: perhaps of any.
	Freed(store.News)
}

// A Store is what a Mirror asks, as the methods of [store.Store] do.
type Store interface {
	// Now returns the store's clock.
	Now() time.Time
	// MayAnswer reports whether it is any use to ask the store: if it failed a moment ago it most likely does now.
	MayAnswer() bool
	// Pause, Quarantine, Resume and Watch are those of [store.Store].
	Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error)
	// Quarantine asks the store.
	Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error)
	// Resume asks the store.
	Resume(ctx context.Context, r store.ResumeRequest) (store.PauseReply, error)
	// Watch has the store say what changes.
	Watch(budget string, told func(store.News)) (stop func())
}

// A Mirror keeps the State of a budget's worker. Set the fields before first use; it is then safe for concurrent use.
type Mirror struct {
	// Budget is the name in the store, and Store is asked for it.
	Budget string
	Store  Store
	// Local is set if the store is in this process, and needs not be told of it.
	Local bool
	// Owner is whose it is, and Lines are where its callers wait.
	Owner Owner
	Lines Lines
	// Keys are the pauses of parts.
	Keys cooldown.KeyPauses
	// InRow is set once an account has cooled down several times in a row: its callers say when they are served. Only the methods set it.
	InRow atomic.Bool
	// Secondary tells whether several accounts were refused for a limit that is about none of them.
	Secondary cooldown.Secondary

	state      atomic.Pointer[State] // nil: nothing was heard
	announced  atomic.Int64          // the status's version as the store said it last; 0: it was asked for since
	changing   atomic.Int64          // how many changes of the status this worker has under way
	telling    atomic.Bool           // whether KeepTelling is at work
	watch      watch.Watch           // of the store, while callers wait
	refreshing flight.Group

	mu          sync.Mutex    // protects all below, and state from being changed twice at once
	woken       chan struct{} // closed when callers that wait without a slot must look again; nil: nobody waits for it
	confirmedAt time.Time     // when the status was last confirmed, on this process's clock
	heartbeatAt time.Time     // when the store last heard that this worker is there, likewise
}

var nothing State

// State returns what is known now.
func (m *Mirror) State() *State {
	if s := m.state.Load(); s != nil {
		return s
	}
	return &nothing
}

// Resumed returns a function that reports whether anything was resumed since that state.
func (m *Mirror) Resumed(since *State) func() bool {
	return func() bool { return m.State().Resumes != since.Resumes }
}

// PartsChanged returns one that reports likewise, also whether a pause of a part was ended or shortened.
func (m *Mirror) PartsChanged(since *State) func() bool {
	return func() bool {
		now := m.State()
		return now.Resumes != since.Resumes || now.Parts != since.Parts
	}
}

// apply has the state changed, at an instant of the store's clock, and tells what is news: the owner first, so that nobody who sees the
// new state books what is then forgotten.
func (m *Mirror) apply(now time.Time, f func(*change)) {
	var c change
	m.mu.Lock()
	c.begin(m.State(), now)
	f(&c)
	m.Owner.Told(c.news)
	next := c.State // and not the change with it
	m.state.Store(&next)
	if c.news.Review && m.woken != nil {
		close(m.woken)
		m.woken = nil
	}
	m.mu.Unlock()
	if c.news.Review {
		m.Lines.Review()
	}
}

// LimitsChanged says that the limits of some accounts have changed: waiting callers look at their slots.
func (m *Mirror) LimitsChanged() {
	m.apply(time.Time{}, func(c *change) { c.Limits, c.news.Review = c.Limits+1, true })
}

// Woken returns a channel that is closed when callers that wait without a slot must look again.
func (m *Mirror) Woken() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.woken == nil {
		m.woken = make(chan struct{})
	}
	return m.woken
}

// Watch says that a caller waits from now on, until it calls end: meanwhile the store says what changes.
func (m *Mirror) Watch() (end func()) {
	m.watch.Begin(m.begin)
	return m.watch.End
}

// begin begins a watch.
func (m *Mirror) begin() (stop func()) {
	if end := m.Store.Watch(m.Budget, m.hear); end != nil {
		return end
	}
	return func() {}
}

// KeepTelling has the store told what the callers of this worker do: within a second when that has changed, with each heartbeat for as
// long as they do something, and once when they do nothing any more, or it would be taken for a worker that hangs. Whoever begins to wait,
// or fails, says so; a store that does not answer is told later.
func (m *Mirror) KeepTelling() {
	if !m.Local && m.telling.CompareAndSwap(false, true) {
		time.AfterFunc(lookEvery, m.look)
	}
}

// look tells the store if there is something to tell, and looks again until there is nothing.
func (m *Mirror) look() {
	changed, again := m.Owner.Telling()
	if !changed && !again {
		m.telling.Store(false)
		if changed, again := m.Owner.Telling(); changed || again { // since
			m.KeepTelling()
		}
		return
	}
	m.mu.Lock()
	due := time.Since(m.heartbeatAt) >= Heartbeat
	m.mu.Unlock()
	if changed || due {
		_ = m.Refresh(context.Background())
	}
	time.AfterFunc(lookEvery, m.look)
}

// unknownVersion is announced if some news may be missing. No status has it.
const unknownVersion = -1

// hear takes in what the store tells of itself: a new version of the status, or that slots are free. The
// store calls it, so it asks nothing itself, and takes no lock under which the store is asked.
func (m *Mirror) hear(news store.News) {
	if news.Silent {
		if m.Store.MayAnswer() {
			go func() { _ = m.Refresh(context.Background()) }() // which notes whether it answers
		}
		return
	}
	if news.Version == 0 {
		go m.Lines.Freed(news)
	}
	if news.Account == "" && news.Permits == "" && (news.Version == 0 || news.Version != m.State().Status.Version) {
		m.announced.Store(cmp.Or(news.Version, unknownVersion))
		if m.changing.Load() == 0 { // otherwise it may be this worker's own change, of which it hears soon
			go m.catchUp()
		}
	}
}

// Heard notes that a reply, which was asked for or arrived at that instant of this process's clock, is of a version of the status. It
// reports whether that is the known one, and the store has heard of this worker lately: otherwise it is to be asked.
func (m *Mirror) Heard(version int64, at time.Time) (known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if version != m.State().Status.Version {
		return false
	}
	if at.After(m.confirmedAt) {
		m.confirmedAt = at
	}
	return m.Local || at.Sub(m.heartbeatAt) <= Heartbeat
}

// Announce notes that the status has another version than the known one: somebody asks for it soon.
func (m *Mirror) Announce(version int64) {
	if version != m.State().Status.Version {
		m.hear(store.News{Version: version})
	}
}

// beginChange notes that this worker is about to change the status. What it has announced meanwhile is asked for at the end, if it was not
// the change itself.
func (m *Mirror) beginChange() (end func()) {
	m.changing.Add(1)
	return func() {
		if m.changing.Add(-1) == 0 && m.isBehind() {
			go m.catchUp()
		}
	}
}

// catchUp asks for the status until nothing is announced that it does not know. If the store
// does not answer, the next caller asks.
func (m *Mirror) catchUp() {
	for m.isBehind() && m.Refresh(context.Background()) == nil {
	}
}

// isBehind reports whether another status than the known one was announced since it was asked for last.
func (m *Mirror) isBehind() bool {
	announced := m.announced.Load()
	return announced != 0 && announced != m.State().Status.Version
}

// Confirm asks for the status if it is too old for a slot that comes at that instant of this process's clock, so that pauses are known
// as of ConfirmAfter before at the most. If the store does not answer, the last known status counts, because the slot was booked.
func (m *Mirror) Confirm(ctx context.Context, due time.Time) {
	for range 2 { // the first answer may be to a question from before the announcement
		m.mu.Lock()
		old := due.Sub(m.confirmedAt) > ConfirmAfter
		m.mu.Unlock()
		if !old && !m.isBehind() || !m.Store.MayAnswer() || m.Refresh(ctx) != nil {
			return
		}
	}
}

// IsOld reports whether the status is too old at an instant of this process's clock.
func (m *Mirror) IsOld(at time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return at.Sub(m.confirmedAt) > ConfirmAfter
}

// Refresh asks for what has changed of the status, once for all callers that need it at once. The store bounds how long that takes. An
// error is the store's, or that of the caller's context.
func (m *Mirror) Refresh(ctx context.Context) error {
	defer m.Owner.Tell()
	return m.refreshing.Do(ctx, "", func() error {
		ctx, announced := context.WithoutCancel(ctx), m.announced.Load()
		for more := true; more; {
			known := m.State().Status.Version
			status, limits, err := m.Owner.Status(ctx, known)
			if err != nil {
				return err
			}
			m.apply(status.Now, func(c *change) {
				if limits {
					c.Limits, c.news.Review = c.Limits+1, true
				}
				c.status(&status)
				if status.Since == 0 { // what is over is not told: another may have probed it
					m.Keys.EndOver(c.now)
				}
				for _, r := range status.Resumed { // before the pauses that are in force since
					m.endKeys(r)
				}
				for _, p := range status.Pauses {
					m.pause(c, p)
				}
				if m.heartbeatAt = time.Now(); !status.More {
					m.confirmedAt = m.heartbeatAt
				}
			})
			more = status.More && status.Version != known
		}
		m.announced.CompareAndSwap(announced, 0)
		return nil
	})
}

// endKeys ends the pauses of parts that a resumption has ended.
func (m *Mirror) endKeys(r store.Resumption) {
	switch {
	case r.Account != "":
		m.Keys.End(r.Account)
	case r.Token == "":
		m.Keys.EndAll()
	}
}

// pause takes in a pause of an account or a part.
func (m *Mirror) pause(c *change, p store.Pause) {
	if p.Key == "" {
		if p.Row >= ServedFrom {
			m.InRow.Store(true)
		}
		c.pause(p)
		return
	}
	pause := cooldown.FromStore(p)
	switch known := m.Keys.Last(pause.Key, p.Account); {
	case known.Until.Equal(pause.Until):
	case pause.Kind == store.PauseServed || known.Kind == store.PauseProbed && pause.Until.Before(known.Until):
		m.Keys.Replace(pause) // callers that wait without a slot look again
		c.Parts, c.news.Review = c.Parts+1, true
	case !p.Until.After(c.now) && known.Until.IsZero(): // it was over before anything was heard of it
	case m.Keys.Lengthen(pause.Key, p.Account, pause, c.now) && pause.IsTold() && p.Until.After(c.now):
		c.news.Paused = append(c.news.Paused, p)
	}
}

// ServedFrom is from how many cooldowns in a row on the fleet is told that an account is served again. Before that each worker goes by what
// it has seen itself, which costs no script.
const ServedFrom = 3

// A worker that changes the status knows the new one without asking, if nobody else has changed it meanwhile.

// own has the state changed by this worker's own change, which the store has answered.
func (m *Mirror) own(reply store.PauseReply, f func(*change)) {
	m.apply(m.Store.Now(), func(c *change) {
		f(c)
		if reply.Before == c.Status.Version { // nothing else has changed: the status is known without asking
			c.Status.Version, m.confirmedAt = reply.Version, time.Now()
		}
	})
	m.Owner.Tell()
}

// Pause has the store pause an account or a part, and notes the pause here. It returns when the pause in force ends.
func (m *Mirror) Pause(ctx context.Context, r store.PauseRequest) (time.Time, error) {
	r.Budget = m.Budget
	defer m.beginChange()()
	reply, err := m.Store.Pause(ctx, r)
	if err != nil {
		return time.Time{}, err
	}
	if reply.Version == reply.Before {
		r.Cause = "" // a longer pause is in force, by another cause
	}
	m.own(reply, func(c *change) {
		if reply.Version > c.Status.Version { // or a resumption may have ended it meanwhile
			m.pause(c, r.Pause(reply.Until))
		}
	})
	return reply.Until, nil
}

// PauseAnyway is Pause for what only this process keeps if the store does not answer.
func (m *Mirror) PauseAnyway(ctx context.Context, r store.PauseRequest) {
	until, err := m.Pause(ctx, r)
	if err == nil && !r.Replaces.IsZero() && !until.After(m.Store.Now()) { // what was to be replaced is lost
		r.Replaces = time.Time{}
		_, err = m.Pause(ctx, r)
	}
	if err != nil {
		m.PauseHere(r)
	}
}

// PauseHere notes a pause for this process alone.
func (m *Mirror) PauseHere(r store.PauseRequest) {
	now := m.Store.Now()
	m.apply(now, func(c *change) {
		m.pause(c, r.Pause(now.Add(r.For)))
		m.Keys.SetHere(cooldown.Key(r.Key), r.Account)
	})
	m.Owner.Tell()
}

// Replace has the store replace a pause by another one, and reports whether the caller is the one of the fleet that did: so one request
// probes, while the others wait. It returns the end of the pause that is in force. Without the store it is the one of this process.
func (m *Mirror) Replace(ctx context.Context, r store.PauseRequest) (until time.Time, replaced bool) {
	r.Budget = m.Budget
	defer m.beginChange()()
	reply, err := m.Store.Pause(ctx, r)
	switch {
	case err != nil:
		return m.ReplaceHere(r)
	case reply.Version != reply.Before:
		m.own(reply, func(c *change) {
			if reply.Version > c.Status.Version { // or somebody has replaced it meanwhile
				m.pause(c, r.Pause(reply.Until))
			}
		})
		return reply.Until, true
	case !reply.Until.After(r.Replaces): // the store has lost it
		m.Keys.Forget(cooldown.Key(r.Key), r.Account, r.Replaces)
		return r.Replaces, true
	}
	if m.Refresh(ctx) != nil { // by which pause it was replaced
		r.Kind = store.PauseCooldown
		m.apply(m.Store.Now(), func(c *change) { m.pause(c, r.Pause(reply.Until)) })
	}
	return reply.Until, false
}

// ReplaceHere is Replace for a pause of a part that only this process keeps.
func (m *Mirror) ReplaceHere(r store.PauseRequest) (until time.Time, replaced bool) {
	now, key := m.Store.Now(), cooldown.Key(r.Key)
	until = now.Add(r.For)
	m.apply(now, func(c *change) {
		if replaced = m.Keys.Last(key, r.Account).Until.Equal(r.Replaces); replaced {
			m.pause(c, r.Pause(until))
			m.Keys.SetHere(key, r.Account)
		}
	})
	return until, replaced
}

// Resume has the store end pauses and quarantines, and notes here that they ended.
func (m *Mirror) Resume(ctx context.Context, r store.ResumeRequest) error {
	r.Budget = m.Budget
	defer m.beginChange()()
	reply, err := m.Store.Resume(ctx, r)
	if err != nil {
		return err
	}
	m.own(reply, func(c *change) {
		if reply.Version > c.Status.Version {
			m.resume(c, store.Resumption{Account: r.Account, Token: r.Token, Forgotten: r.Forget, At: reply.Until})
		}
	})
	return nil
}

// ResumeHere notes that something was resumed, for this process alone.
func (m *Mirror) ResumeHere(r store.Resumption) {
	r.At = m.Store.Now()
	m.apply(r.At, func(c *change) {
		m.resume(c, r)
		c.news.Resumed = nil // nobody else hears of it
	})
}

func (m *Mirror) resume(c *change, r store.Resumption) {
	c.resume(r)
	m.endKeys(r)
}

// Quarantine keeps the whole fleet from using a token for so long or, while the store does not answer, this process. It returns the end
// of the quarantine in force, and whether it has changed. If replaced is not zero only the quarantine that ends, or ended, then is
// changed.
func (m *Mirror) Quarantine(ctx context.Context, q store.Quarantine, length time.Duration, replaced time.Time) (until time.Time, changed bool, err error) {
	defer m.beginChange()()
	reply, err := m.Store.Quarantine(ctx, store.QuarantineRequest{
		Budget: m.Budget, Token: q.Token, Reason: q.Reason, For: length, Count: q.Count, Probing: q.Probing, Replaces: replaced, Cause: q.Cause,
	})
	now := m.Store.Now()
	if err != nil {
		q.Until = now.Add(length)
		m.apply(now, func(c *change) { c.quarantine(q) })
		m.Owner.Tell()
		return q.Until, false, err
	}
	q.Until, changed = reply.Until, reply.Version != reply.Before
	m.own(reply, func(c *change) {
		known := c.known(&q)
		if changed && reply.Version > c.Status.Version || !changed && replaced.IsZero() && q.Until.After(known) {
			c.quarantine(q)
		}
	})
	return reply.Until, changed, nil
}

// ForgetQuarantine forgets a quarantine that the store does not know.
func (m *Mirror) ForgetQuarantine(q *store.Quarantine) {
	m.apply(m.Store.Now(), func(c *change) { c.forget(q) })
}
