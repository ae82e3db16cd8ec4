package ration

import (
	"cmp"
	"context"
	"time"

	"github.com/ration-go/ration/internal/cooldown"
	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/internal/watch"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// A pause must also hold back callers in other processes that have booked before it and
// are asleep. The answer to every booking carries the version of the budget's status, and
// a caller whose slot has come asks for the status if it was not confirmed within
// confirmAfter. While callers wait, a store that can (Store.Watch) says as well when there
// is a new version: one of them asks for the status, and wakes the callers that the change concerns.

const confirmAfter = time.Second

// watchStore has the store say when the status changes, if it can, and goes on to tell the store
// of this worker while its callers wait and book nothing.
func (b *Budget) watchStore() (stop func()) {
	var ends []func()
	if !b.isLocal() {
		ends = append(ends, watch.Every(heartbeat, b.beat))
	}
	if end := b.Store.Watch(b.Name, b.hear); end != nil {
		ends = append(ends, end)
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// beat asks for the status, which tells the store of this worker, unless something else just has.
// If the store does not answer, the next beat tells it.
func (b *Budget) beat(ctx context.Context) {
	b.mu.Lock()
	due := time.Since(b.heartbeatAt) >= heartbeat
	b.mu.Unlock()
	if due {
		_ = b.refresh(ctx)
	}
}

// tellSoon tells the store within a second of callers that wait without a slot, and again with each heartbeat for as long as they do.
func (b *Budget) tellSoon() {
	if b.isLocal() || !b.tells.CompareAndSwap(false, true) {
		return
	}
	var again func()
	again = func() {
		if !b.isStalled() {
			if b.tells.Store(false); b.isStalled() { // since
				b.tellSoon()
			}
			return
		}
		_ = b.refresh(context.Background())
		time.AfterFunc(heartbeat, again)
	}
	time.AfterFunc(time.Second, again)
}

// isStalled reports whether any caller waits without a slot, for a secret or a probe. Nobody books then, and no reply would have this worker
// tell of them; those that wait for a slot or for the end of a pause keep a watch, which does.
func (b *Budget) isStalled() bool {
	return b.waiting[rationtrace.Source].Load() > 0 || b.waiting[rationtrace.Probe].Load() > 0
}

// hear takes in what the store tells of itself: a new version of the status, or that slots are free. The
// store calls it, so it asks nothing itself, and takes no lock under which the store is asked.
func (b *Budget) hear(news store.News) {
	if news.Version == 0 {
		b.freed.Add(1)
		go b.lines.free(news.Account)
	}
	if news.Account == "" && (news.Version == 0 || news.Version != b.version.Load()) {
		b.announced.Store(cmp.Or(news.Version, unknownVersion))
		if b.changing.Load() == 0 { // otherwise it may be this worker's own change, of which it hears soon
			go b.catchUp()
		}
	}
}

// unknownVersion is announced if some news may be missing. No status has it.
const unknownVersion = -1

// beginChange notes that this worker is about to change the status. What it has announced meanwhile is asked for at the end, if it was not
// the change itself.
func (b *Budget) beginChange() (end func()) {
	b.changing.Add(1)
	return func() {
		if b.changing.Add(-1) == 0 && b.isBehind() {
			go b.catchUp()
		}
	}
}

// catchUp asks for the status until nothing is announced that it does not know. If the store
// does not answer, the next caller asks.
func (b *Budget) catchUp() {
	for b.isBehind() && b.refresh(context.Background()) == nil {
	}
}

// isBehind reports whether another status than the known one was announced since it was asked for last.
func (b *Budget) isBehind() bool {
	announced := b.announced.Load()
	return announced != 0 && announced != b.version.Load()
}

// refresh asks for what has changed of the status, once for all callers that need it, and
// records again what the store has lost. The store bounds how long that takes. An error is the
// store's, or that of the caller's context.
func (b *Budget) refresh(ctx context.Context) error {
	defer b.tell()
	return b.askOnce(ctx, "", func() error {
		announced := b.announced.Load()
		for more := true; more; {
			var err error
			if more, err = b.refreshPart(context.WithoutCancel(ctx)); err != nil {
				return err
			}
		}
		b.announced.CompareAndSwap(announced, 0)
		return nil
	})
}

// newsFor is how long after a resumption a process that hears of it says so in an event: one that
// has just begun hears of those of a day.
const newsFor = time.Minute

// refreshPart is refresh for as many changes as the store tells at once. It reports whether
// there are more.
func (b *Budget) refreshPart(ctx context.Context) (more bool, err error) {
	r := store.StatusRequest{Budget: b.Name, Known: b.version.Load()}
	local := b.isLocal()
	if !local {
		r.Worker, r.Load = b.nameInStore(), b.load()
	}
	asked, rules := time.Now(), b.currentRules()
	status, err := asks(ctx, b, "status", b.Store.Status, r)
	if b.noteStore(err); err != nil {
		return false, err
	}
	arrived := time.Now()
	b.clocks.Place(status.Now, asked, arrived)
	b.mu.Lock()
	lost := status.Lost.After(b.recoveredUpTo)
	b.mu.Unlock()
	if lost && !local {
		count, err := b.recover(ctx, status)
		if err != nil {
			return false, err
		}
		if count > 0 {
			time.AfterFunc(time.Second, func() { _ = b.refresh(context.WithoutCancel(ctx)) }) // which tells people of it
		}
	} else {
		lost = false
	}
	if err := b.agreeOnCards(ctx, rules, &status, lost); err != nil {
		return false, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if status.OldLog && !b.toldOldLog {
		b.toldOldLog = true
		b.emit(Event{Kind: OldLogFound})
	}
	b.noteLimits(&status, asked)
	for _, one := range status.Resumed { // before those that are in force since
		if b.noteResumption(one) && status.Now.Sub(one.At) < newsFor {
			b.emit(Event{Kind: Resumed, Account: one.Account, Token: one.Token})
		}
	}
	for _, p := range status.Pauses {
		b.notePause(p, status.Now)
	}
	for _, q := range status.Quarantined {
		b.noteQuarantine(q, status.Now)
	}
	status.Pauses, status.Quarantined, status.Resumed, status.Cards = nil, nil, nil, nil
	b.version.Store(status.Version)
	b.known, b.heartbeatAt, b.recoveredUpTo = status, time.Now(), status.Lost
	if !status.More {
		b.confirmedAt = time.Now()
	}
	return status.More && status.Version != r.Known, nil
}

// load returns what other processes are told of this one's callers.
func (b *Budget) load() store.Load {
	b.mu.Lock()
	load := store.Load{InFlight: int(b.inFlight.Load()), LogLost: b.logLost}
	b.mu.Unlock()
	b.rates.add(&load, time.Now())
	for reason, n := range b.waitingNow() {
		if load.Waiting == nil {
			load.Waiting = make(map[string]int)
		}
		load.Waiting[reason.String()] = n
	}
	return load
}

// notePause notes a pause if it is longer than the known one, at that instant of the store's
// clock: what a worker knows of pauses grows with what it hears, in any order, until a resumption.
// It needs mu.
func (b *Budget) notePause(p store.Pause, now time.Time) {
	if !p.Until.After(now) {
		return
	}
	pause, isNews := cooldown.Pause{Until: p.Until, Tried: p.Apart > mostSpacing, Cause: p.Cause}, false
	if p.Key != "" {
		pause.Key, pause.Account = cooldown.Key(p.Key), p.Account
		isNews = b.keyPauses.Lengthen(pause.Key, p.Account, pause, now)
	} else {
		b.paused.Sweep(func(_ string, o cooldown.Pause) bool {
			return !o.Until.After(now) && (!o.Tried || now.Sub(o.Until) > knownFor)
		})
		known := b.paused.Get(p.Account)
		longer := p.Until.After(known.Until)
		if longer {
			b.wakeWaiters()
		}
		// Each request that was in flight is refused too, and asks for a little more: that is one pause.
		isNews = longer && (!known.Told.After(now) || p.Until.Sub(known.Told) > max(time.Second, known.Told.Sub(now)/10))
		if pause.Told = known.Told; isNews {
			pause.Told = p.Until
		}
		if longer || p.Until.Equal(known.Until) && known.Cause == "" {
			b.paused.Set(p.Account, pause)
		}
		if pause.Tried {
			b.tried.Store(true)
		}
	}
	if isNews {
		b.emit(Event{Kind: Paused, Account: p.Account, Key: p.Key, Until: p.Until, Cause: p.Cause})
	}
}

// knownFor is how long after it has ended a quarantine is known: the token is to be probed, and a
// store knows it for as long.
const knownFor = 24 * time.Hour

// noteQuarantine notes the latest that the store says of a token's quarantine. Pools hear of it. It
// needs mu.
func (b *Budget) noteQuarantine(q store.Quarantine, now time.Time) {
	b.quarantined.Sweep(func(_ quarantineKey, o store.Quarantine) bool { return now.Sub(o.Until) > knownFor })
	key := keyOf(q)
	old := b.quarantined.Get(key)
	if q.Until.Equal(old.Until) && q.Probing == old.Probing {
		return
	}
	b.quarantined.Set(key, q)
	b.quarantines.Add(1)
	b.wakeWaiters()
	if !q.Probing && q.Until.After(now) {
		account, _ := b.pooled.Load(q.Token)
		e := Event{Kind: TokenQuarantined, Token: q.Token, Reason: provider.Reason(q.Reason), Until: q.Until, Cause: q.Cause}
		e.Account, _ = account.(string)
		b.emit(e)
	}
}

// isNews reports whether the known status is from before a reply. It needs mu.
func (b *Budget) isNews(reply store.PauseReply) bool { return reply.Version > b.known.Version }

// noteVersion takes in which version of the status this process's own pause has made. If
// nothing else has changed, the status is known without asking. It needs mu.
func (b *Budget) noteVersion(reply store.PauseReply) {
	if reply.Before != b.known.Version {
		return
	}
	b.known.Version, b.confirmedAt = reply.Version, time.Now()
	b.version.Store(reply.Version)
}

// noteLimits notes whose limits the fleet has changed, by the answer to a question that was asked at that instant. It needs mu.
func (b *Budget) noteLimits(status *store.Status, asked time.Time) {
	b.noteCard(status.Card, false)
	if len(status.Cards) == 0 {
		return
	}
	for _, account := range b.lines.accounts() {
		b.learnedOf(account) // or nothing is known of it yet
	}
	for _, one := range status.Cards {
		if l := b.learned.Get(one.Account); l != nil {
			l.news = &toldCard{one.Card, asked}
		}
	}
	b.limitNews.Add(1)
	b.wakeWaiters()
}

// wakeWaiters has waiting callers look whether their slots are still of use, under the
// newest limits and pauses. It needs mu.
func (b *Budget) wakeWaiters() {
	b.wakes.Add(1)
	b.lines.review()
	if b.woken != nil {
		close(b.woken)
		b.woken = nil
	}
}

// nextWake returns a channel that is closed when wakeWaiters is called.
func (b *Budget) nextWake() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.woken == nil {
		b.woken = make(chan struct{})
	}
	return b.woken
}

// A resumed is when an account or a token was resumed last.
type resumed struct {
	at    time.Time // on the store's clock
	count int64     // the budget's resumes then
}

// noteResumption notes what was ended before its time, and reports whether that is news. It needs
// mu.
func (b *Budget) noteResumption(r store.Resumption) (news bool) {
	all := r.Account == "" && r.Token == ""
	news = r.At.After(b.resumedLast(r.Account, r.Token).at)
	one := resumed{r.At, b.resumes.Add(1)}
	b.resumed.Sweep(func(_ store.Resumption, o resumed) bool { return r.At.Sub(o.at) > knownFor })
	if all {
		b.resumed.Set(store.Resumption{}, one)
		b.paused, b.quarantined = sweep.Map[string, cooldown.Pause]{}, sweep.Map[quarantineKey, store.Quarantine]{}
		b.keyPauses.EndAll()
	}
	if r.Account != "" {
		b.resumed.Set(store.Resumption{Account: r.Account}, one)
		b.paused.Remove(r.Account)
		b.keyPauses.End(r.Account)
	}
	if r.Token != "" {
		b.resumed.Set(store.Resumption{Token: r.Token}, one)
		for _, reason := range quarantineReasons {
			b.quarantined.Remove(quarantineKey{r.Token, reason})
		}
	}
	if r.Forgotten && news {
		b.journal.Forget(r.Account)
		if l := b.learned.Get(r.Account); l != nil {
			l.reconciler, l.card = nil, nil
		}
	}
	b.lastResumed = cooldown.Later(b.lastResumed, r.At)
	b.quarantines.Add(1)
	b.wakeWaiters()
	return news
}

// resumedLast returns when an account or a token, or all, were resumed last. It needs mu.
func (b *Budget) resumedLast(account, token string) resumed {
	last := b.resumed.Get(store.Resumption{})
	for _, key := range [...]store.Resumption{{Account: account}, {Token: token}} {
		if one := b.resumed.Get(key); one.count > last.count {
			last = one
		}
	}
	return last
}
