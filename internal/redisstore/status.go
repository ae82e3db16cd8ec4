package redisstore

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/store"
)

// Pause implements [store.Store].
func (s *Store) Pause(ctx context.Context, r store.PauseRequest) (store.PauseReply, error) {
	if err := r.Validate(); err != nil {
		return store.PauseReply{}, err
	}
	return s.pause(ctx, "pause", pauseScript(), r.Budget, []any{micros(r.Now), encodePause(r.Account, r.Key), r.For.Microseconds(), r.SlowStart.Microseconds() + kindStep*(int64(r.Kind)+kinds*int64(r.Row)), micros(r.Replaces), r.Cause})
}

// Quarantine implements [store.Store].
func (s *Store) Quarantine(ctx context.Context, r store.QuarantineRequest) (store.PauseReply, error) {
	if err := r.Validate(); err != nil {
		return store.PauseReply{}, err
	}
	number := 2 * r.Count
	if r.Probing {
		number++
	}
	args := []any{micros(r.Now), encodeQuarantine(r.Token, r.Reason), r.For.Microseconds(), number, micros(r.Replaces), r.Cause}
	return s.pause(ctx, "quarantine", pauseScript(), r.Budget, args)
}

// Resume implements [store.Store].
func (s *Store) Resume(ctx context.Context, r store.ResumeRequest) (store.PauseReply, error) {
	if err := r.Validate(); err != nil {
		return store.PauseReply{}, err
	}
	forget := ""
	if r.Forget {
		forget = "1"
	}
	return s.pause(ctx, "resume", resumeScript(), r.Budget, []any{micros(r.Now), r.Account, r.Token, encodeResumption(r), forget})
}

// pause runs a script that changes the status.
func (s *Store) pause(ctx context.Context, op string, script *redis.Script, budget string, args []any) (store.PauseReply, error) {
	reply, err := s.run(ctx, op, script, budget, args)
	if err != nil {
		return store.PauseReply{}, err
	}
	var n [3]int64
	reply.numbers(n[:])
	if err := reply.end(op); err != nil {
		return store.PauseReply{}, err
	}
	return store.PauseReply{Until: instant(n[0]), Version: n[1], Before: n[2]}, nil
}

// Status implements [store.Store].
func (s *Store) Status(ctx context.Context, r store.StatusRequest) (store.Status, error) {
	if err := r.Validate(); err != nil {
		return store.Status{}, err
	}
	load, err := json.Marshal(r.Load)
	if err != nil {
		return store.Status{}, err
	}
	s.told.mu.RLock()
	defer s.told.mu.RUnlock()
	if worker := (worker{r.Budget, r.Worker}); r.Leaves {
		load = nil
		s.told.all.Delete(worker)
	} else if r.Worker != "" {
		s.told.all.Store(worker, r.Known)
	}
	args := []any{micros(r.Now), r.Worker, r.Known, load, r.Load.Process.Error}
	for _, p := range r.Permits {
		args = append(args, p.Limit, p.Max, p.Used, p.Wanted, p.Share, p.Refused, p.Label)
	}
	reply, err := s.run(ctx, "status", statusScript(), r.Budget, args)
	if err != nil {
		return store.Status{}, err
	}
	var n [9]int64
	reply.numbers(n[:])
	status := store.Status{
		Now: instant(n[0]), Version: n[1], Lost: instant(n[2]), Workers: toInt(n[3]), Revision: toInt(n[4]), NewestCard: n[5], Since: n[6],
		More: n[7] > 0, OldLog: n[8] > 0,
	}
	if status.Evicts = reply.name(); reply.err == nil {
		status.Card = reply.card()
		if text := reply.name(); text != "" {
			status.Failing = failing(text)
		}
	}
	for _, asked := range r.Permits {
		var n [4]int64
		reply.numbers(n[:])
		status.Permits = append(status.Permits, store.Permits{Limit: asked.Limit, Label: asked.Label, Share: toInt(n[0]), Max: toInt(n[1]), Used: toInt(n[2]), Short: n[3] > 0})
	}
	for reply.rest != "" {
		name := reply.name()
		var n [2]int64
		reply.numbers(n[:])
		if account, found := strings.CutPrefix(name, cardPrefix); found {
			if card := reply.card(); card.Limits != nil {
				status.Cards = append(status.Cards, store.AccountCard{Account: account, Card: card})
			}
			continue
		}
		addPause(&status, name, instant(n[0]), toInt(n[1]), reply.name())
	}
	if err := reply.end("status"); err != nil {
		return store.Status{}, err
	}
	s.announcements.hearOfLoss(status.Lost)
	return status, nil
}

// failing reads what status.lua tells of the last worker that said that it fails: when, its name and why.
func failing(text string) (f store.FailingWorker) {
	at, rest, _ := strings.Cut(text, "\n")
	f.Worker, f.Error, _ = strings.Cut(rest, "\n")
	if micros, err := strconv.ParseInt(at, 10, 64); err == nil {
		f.At = instant(micros)
	}
	return f
}

// A worker is one of a budget, by its name.
type worker struct{ budget, name string }

// A toldWorkers is who this process has told Redis of: until they leave, or Settle says that they have.
type toldWorkers struct {
	mu  sync.RWMutex // shared by who tells, so that nobody is told of while all leave
	all sync.Map     // the version of the status that each knew, by worker
}

// leave says of all workers of this process that they have ended. If Redis does not answer it finds out by itself.
func (s *Store) leave(ctx context.Context) {
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	for one, known := range s.told.all.Range {
		w := one.(worker)
		if _, err := s.run(ctx, "status", statusScript(), w.budget, []any{"", w.name, known, "", ""}); err != nil {
			return
		}
		s.told.all.Delete(one)
	}
}

// The scripts keep every pause under one name, as if it were an account's. A name that is
// not an account's has a character that no account's ID has.

const (
	allAccounts      = "*"
	keyPrefix        = "at:"         // at:KEY or at:KEY:ACCOUNT
	quarantinePrefix = "quarantine:" // quarantine:REASON:TOKEN
	endedPrefix      = "ended:"      // ended:ACCOUNT:TOKEN, of what a Resume has ended
	forgottenPrefix  = "ended::"     // ended::ACCOUNT:TOKEN, of an account that was forgotten
	cardPrefix       = "card:"       // card:ACCOUNT, of an account's card that was changed
)

// encodePause names the pause of an account, of all, or of a part of them.
func encodePause(account, key string) string {
	switch {
	case key == "":
		return cmp.Or(account, allAccounts)
	case account == "":
		return keyPrefix + key
	}
	return keyPrefix + key + ":" + account
}

// The number beside a pause has the step of its slow start, in microseconds, and above that its kind, and how often in a row it was.
const (
	kindStep = 1 << 37 // more than 24 h
	kinds    = 4
)

// encodeQuarantine names the quarantine of a token.
func encodeQuarantine(token, reason string) string { return quarantinePrefix + reason + ":" + token }

// encodeResumption names what a request ends.
func encodeResumption(r store.ResumeRequest) string {
	prefix := endedPrefix
	if r.Forget {
		prefix = forgottenPrefix
	}
	return prefix + cmp.Or(r.Account, allAccounts) + ":" + r.Token
}

// addPause adds to the status what a name stands for, its end, the number beside it, and its cause.
func addPause(status *store.Status, name string, until time.Time, number int, cause string) {
	if rest, found := strings.CutPrefix(name, quarantinePrefix); found {
		reason, token, _ := strings.Cut(rest, ":")
		status.Quarantined = append(status.Quarantined, store.Quarantine{Token: token, Reason: reason, Until: until, Count: number / 2, Probing: number%2 == 1, Cause: cause})
		return
	}
	if rest, found := strings.CutPrefix(name, endedPrefix); found {
		one := store.Resumption{At: until}
		rest, one.Forgotten = strings.CutPrefix(rest, ":")
		rest = strings.TrimPrefix(rest, allAccounts)
		one.Account, one.Token, _ = strings.Cut(rest, ":")
		status.Resumed = append(status.Resumed, one)
		return
	}
	pause := store.Pause{Account: name, Until: until, Cause: cause}
	if rest, found := strings.CutPrefix(name, keyPrefix); found {
		pause.Key, pause.Account, _ = strings.Cut(rest, ":")
	} else if name == allAccounts {
		pause.Account = ""
	}
	pause.SlowStart = time.Duration(number%kindStep) * time.Microsecond
	pause.Kind, pause.Row = store.PauseKind(number/kindStep%kinds), number/kindStep/kinds
	status.Pauses = append(status.Pauses, pause)
}

// The scripts publish each new version of a budget's status on a channel that is named like
// the budget's own key. All watchers of a Store share one connection that subscribes to the
// channels of their budgets, and one goroutine that reads it, for as long as there are any.
// A channel without watchers is not left before: its budget is soon watched again.

const (
	// quietFor is the silence after which Redis is asked whether it is there. If it says nothing for as long again, the watchers are told,
	// and the connection is made anew once it was silent deadAfter times in a row. Callers that all wait for their slots ask Redis
	// nothing, so this is how a process finds out within three seconds that Redis does not answer: a second of silence, and the two in
	// which a question must be answered. It costs one PING for each half second in which nothing else is said.
	quietFor  = 500 * time.Millisecond
	deadAfter = 6
	// leastRest and longestRest bound the time between two tries to subscribe, and refusedRest while Redis, or a proxy before it, answers
	// that it does not want to. It doubles each time.
	leastRest   = 50 * time.Millisecond
	longestRest = time.Second
	refusedRest = time.Minute
)

// watchers are those who want to hear of budgets' new versions.
type watchers struct {
	quiet time.Duration // zero: quietFor

	mu        sync.Mutex // protects all below
	byChannel map[string][]*watcher
	stop      context.CancelFunc // ends listen; nil: it does not run
	pubsub    *redis.PubSub      // that is subscribed to all of byChannel; nil: none is
}

type watcher struct{ told func(store.News) }

// At implements [store.Store]: Redis is in another process.
func (s *Store) At(time.Time) time.Time { return time.Time{} }

// Watch implements [store.Store].
func (s *Store) Watch(budget string, told func(store.News)) (stop func()) {
	if s.Client == nil {
		return func() {}
	}
	channel, one, all := BaseKey(budget), &watcher{told}, &s.watchers
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byChannel == nil {
		all.byChannel = make(map[string][]*watcher)
	}
	all.byChannel[channel] = append(all.byChannel[channel], one)
	if all.stop == nil {
		var ctx context.Context
		ctx, all.stop = context.WithCancel(context.Background())
		go all.listen(ctx, s.Client)
	} else if pubsub := all.pubsub; pubsub != nil {
		// Also if others watch the budget: Redis confirms it once more, from when on this
		// one misses nothing. It may have to connect first.
		go func() { _ = pubsub.Subscribe(context.Background(), channel) }()
	}
	return func() { all.remove(channel, one) }
}

// remove removes a watcher. The last one's ends the subscription.
func (w *watchers) remove(channel string, one *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := slices.DeleteFunc(w.byChannel[channel], func(o *watcher) bool { return o == one })
	if w.byChannel[channel] = left; len(left) == 0 {
		delete(w.byChannel, channel)
	}
	if len(w.byChannel) == 0 && w.stop != nil {
		w.stop()
		w.stop, w.pubsub = nil, nil
	}
}

// listen keeps a subscription until the context ends, or the client is closed.
func (w *watchers) listen(ctx context.Context, client redis.UniversalClient) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	rest := leastRest
	for {
		confirmed, err := w.receive(ctx, client)
		if ctx.Err() != nil || errors.Is(err, redis.ErrClosed) {
			return
		}
		if confirmed {
			rest = leastRest
		} else if _, refused := errors.AsType[redis.Error](err); refused {
			rest = min(2*rest, refusedRest)
		} else {
			rest = min(2*rest, longestRest)
		}
		timer.Reset(rest)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// receive subscribes and tells the watchers what comes, until the connection is of no use. It
// reports whether Redis confirmed a subscription.
func (w *watchers) receive(ctx context.Context, client redis.UniversalClient) (confirmed bool, err error) {
	pubsub := client.Subscribe(ctx)
	closeIt := func() { _ = pubsub.Close() }
	defer closeIt()
	defer context.AfterFunc(ctx, closeIt)()
	w.mu.Lock()
	if ctx.Err() != nil {
		w.mu.Unlock()
		return false, ctx.Err()
	}
	w.pubsub = pubsub
	w.mu.Unlock()
	err = w.subscribe(ctx, pubsub)
	for silences := 0; err == nil; {
		var got any
		if got, err = pubsub.ReceiveTimeout(ctx, cmp.Or(w.quiet, quietFor)); err == nil {
			if silences > 1 { // it answers again
				w.tellAll(pubsub, store.News{})
			}
			silences = 0
		} else if timeout, is := errors.AsType[net.Error](err); is && timeout.Timeout() {
			switch silences++; silences {
			case 1:
				err = pubsub.Ping(ctx)
			case deadAfter:
			default:
				if err = nil; silences == 2 {
					w.tellAll(pubsub, store.News{Silent: true})
				}
			}
		}
		if _, refused := errors.AsType[redis.Error](err); refused && confirmed { // a user who may not ping: Redis has answered
			silences, err = 0, nil
		}
		switch got := got.(type) {
		case *redis.Subscription:
			confirmed = true
			w.tell(pubsub, got.Channel, store.News{})
		case *redis.Message:
			w.tell(pubsub, got.Channel, parseNews(got.Payload))
		}
	}
	if _, refused := errors.AsType[redis.Error](err); !refused { // or Redis has answered
		w.tellAll(pubsub, store.News{Silent: true})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pubsub == pubsub {
		w.pubsub = nil
	}
	return confirmed, err
}

// tellAll tells the watchers of all channels.
func (w *watchers) tellAll(pubsub *redis.PubSub, news store.News) {
	w.mu.Lock()
	channels := slices.Collect(maps.Keys(w.byChannel))
	w.mu.Unlock()
	for _, channel := range channels {
		w.tell(pubsub, channel, news)
	}
}

// subscribe subscribes to the channels of all watchers.
func (w *watchers) subscribe(ctx context.Context, pubsub *redis.PubSub) error {
	w.mu.Lock()
	channels := slices.Collect(maps.Keys(w.byChannel))
	w.mu.Unlock()
	return pubsub.Subscribe(ctx, channels...)
}

// parseNews reads what the scripts publish: a version, an account that has room, or a limit of which permits are wanted. The zero News is of a
// message that this version of the store does not know.
func parseNews(message string) (news store.News) {
	if limit, wanted := strings.CutPrefix(message, "permits "); wanted {
		return store.News{Permits: limit}
	}
	if account, free := strings.CutPrefix(message, "free "); free {
		account, more, _ := strings.Cut(account, " ")
		news = store.News{Account: account, Now: more == "now"}
		if by, err := hex.DecodeString(more); err == nil {
			copy(news.By[:], by)
		}
		return news
	}
	news.Version, _ = strconv.ParseInt(message, 10, 64)
	return news
}

// tell tells the watchers of a channel, but not those that came when the
// subscription had ended: what they hear first is that their own is in force.
func (w *watchers) tell(pubsub *redis.PubSub, channel string, news store.News) {
	w.mu.Lock()
	var told []*watcher
	if w.pubsub == pubsub {
		told = slices.Clone(w.byChannel[channel])
	}
	w.mu.Unlock()
	for _, one := range told {
		one.told(news)
	}
}
