package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"golang.org/x/time/rate"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/store"
)

// A peer is one way to keep calls within a quota. All do the same work: a call on one of several tokens that each
// have the quota.
type peer struct {
	name string
	// start returns how one asks, and what ends that.
	start func(s setup) (ask, func(), error)
	// unlimited tells that it keeps nobody back.
	unlimited bool
	// waits, if not nil, starts what lets calls through in use; start then starts a part of it, which is timed.
	waits func(s setup) (ask, func(), error)
}

// A setup is what a peer is started with.
type setup struct {
	addr  string // of a Redis
	sent  *harness.Sent
	limit ration.Limit // of each token
	keys  int          // how many tokens
}

// An ask asks for one call on a token, counted from 0. It returns zero if the call may be made, and otherwise after how
// long to ask again. It is safe for concurrent use.
type ask func(ctx context.Context, key int) (time.Duration, error)

var (
	incr       = peer{name: "INCR", start: startIncr, unlimited: true}
	multi      = peer{name: "a sorted set in MULTI (log first, count after)", start: startMulti}
	redisRate  = peer{name: "redis_rate", start: startRedisRate}
	rueidisOne = peer{name: "redis_rate through rueidis", start: startRueidis}
	timeRate   = peer{name: "x/time/rate, in one process", start: startTimeRate}
	memory     = peer{name: "**ration**, in one process", start: startMemory, waits: waitInMemory}
	rationOne  = peer{name: "**ration**", start: startRation, waits: waitForRation}
)

// client returns a client of go-redis, whose requests are counted if the setup asks for that.
func (s setup) client() *redis.Client {
	return harness.NewClient(s.addr, s.sent)
}

func closing(client *redis.Client) func() { return func() { _ = client.Close() } }

// startIncr is what counting costs that keeps nobody back.
func startIncr(s setup) (ask, func(), error) {
	client := s.client()
	return func(ctx context.Context, key int) (time.Duration, error) {
		return 0, client.Incr(ctx, "incr:"+strconv.Itoa(key)).Err()
	}, closing(client), nil
}

// pollEvery is how often a caller of MULTI asks again. The article does not say.
const pollEvery = 100 * time.Millisecond

// startMulti is the transaction of the article "Building a sliding window rate limiter with Redis": old calls are
// removed, those in the window read, this one is added whatever their number, and only then does the caller count.
func startMulti(s setup) (ask, func(), error) {
	client := s.client()
	return func(ctx context.Context, key int) (time.Duration, error) {
		now, name := time.Now(), "multi:"+strconv.Itoa(key)
		micros := func(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }
		var calls *redis.StringSliceCmd
		_, err := client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
			tx.ZRemRangeByScore(ctx, name, "0", micros(now.Add(-s.limit.Window)))
			calls = tx.ZRange(ctx, name, 0, -1)
			tx.ZAdd(ctx, name, redis.Z{Score: float64(now.UnixMicro()), Member: micros(now)})
			tx.Expire(ctx, name, max(s.limit.Window, time.Second)) // whole seconds
			return nil
		})
		if err != nil || len(calls.Val()) < s.limit.Max {
			return 0, err
		}
		return pollEvery, nil
	}, closing(client), nil
}

// startRedisRate is GCRA with a burst of the whole quota, as its own constructors have it.
func startRedisRate(s setup) (ask, func(), error) {
	client := s.client()
	return allow(redis_rate.NewLimiter(client), s.limit), closing(client), nil
}

// startRueidis is the same through rueidis, which sends what several goroutines ask at once in one write.
func startRueidis(s setup) (ask, func(), error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.addr}, DisableCache: true})
	if err != nil {
		return nil, nil, err
	}
	return allow(redis_rate.NewLimiter(scripts{client, s.sent}), s.limit), client.Close, nil
}

func allow(limiter *redis_rate.Limiter, l ration.Limit) ask {
	quota := redis_rate.Limit{Rate: l.Max, Burst: l.Max, Period: l.Window}
	return func(ctx context.Context, key int) (time.Duration, error) {
		answer, err := limiter.Allow(ctx, strconv.Itoa(key), quota)
		if err != nil || answer.Allowed > 0 {
			return 0, err
		}
		return answer.RetryAfter, nil
	}
}

// scripts gives redis_rate the commands that it needs of go-redis, through rueidis.
type scripts struct {
	client rueidis.Client
	sent   *harness.Sent
}

func (s scripts) do(ctx context.Context, command, script string, keys []string, args []any) *redis.Cmd {
	words := make([]string, 0, len(keys)+len(args)+1)
	words = append(words, strconv.Itoa(len(keys)))
	words = append(words, keys...)
	for _, arg := range args {
		words = append(words, fmt.Sprint(arg))
	}
	if s.sent != nil {
		s.sent.Add()
	}
	value, err := s.client.Do(ctx, s.client.B().Arbitrary(command, script).Args(words...).Build()).ToAny()
	if refused, ok := rueidis.IsRedisErr(err); ok {
		err = redisError(refused.Error()) // which go-redis's Script knows
	}
	return redis.NewCmdResult(value, err)
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (e redisError) RedisError()   {}

func (s scripts) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return s.do(ctx, "EVAL", script, keys, args)
}

func (s scripts) EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd {
	return s.do(ctx, "EVALSHA", sha1, keys, args)
}

func (s scripts) EvalRO(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return s.do(ctx, "EVAL_RO", script, keys, args)
}

func (s scripts) EvalShaRO(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd {
	return s.do(ctx, "EVALSHA_RO", sha1, keys, args)
}

func (s scripts) ScriptExists(context.Context, ...string) *redis.BoolSliceCmd {
	return redis.NewBoolSliceResult(nil, errors.ErrUnsupported)
}

func (s scripts) ScriptLoad(context.Context, string) *redis.StringCmd {
	return redis.NewStringResult("", errors.ErrUnsupported)
}

func (s scripts) Del(context.Context, ...string) *redis.IntCmd {
	return redis.NewIntResult(0, errors.ErrUnsupported)
}

// startTimeRate is a bucket of the whole quota for each token, in this process alone.
func startTimeRate(s setup) (ask, func(), error) {
	all := make([]*rate.Limiter, s.keys)
	perSecond := float64(s.limit.Max) / s.limit.Window.Seconds()
	for i := range all {
		all[i] = rate.NewLimiter(rate.Limit(perSecond), s.limit.Max)
	}
	again := time.Duration(float64(time.Second) / perSecond)
	return func(_ context.Context, key int) (time.Duration, error) {
		if all[key].Allow() {
			return 0, nil
		}
		return again, nil
	}, func() {}, nil
}

// startRation books on the token, or on the one of a pool that is free first. The quota is for calls that do not wait.
func startRation(s setup) (ask, func(), error) {
	client := s.client()
	asking, err := booking(&ration.RedisStore{Client: client}, s)
	return asking, closing(client), err
}

func startMemory(s setup) (ask, func(), error) {
	asking, err := booking(new(ration.MemoryStore), s)
	return asking, func() {}, err
}

func booking(kept ration.Store, s setup) (ask, error) {
	accounts, err := pool(s.keys, s.limit)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ int) (time.Duration, error) {
		b, err := kept.Book(ctx, store.BookRequest{ID: store.NewBookingID(), Budget: "bench", Accounts: accounts, Cost: 1})
		if err != nil || b.Booked {
			return 0, err
		}
		return time.Millisecond, nil
	}, nil
}

// waitForRation has callers wait for their slots, as a crawler's do: what comes too late for its slot is booked again.
func waitForRation(s setup) (ask, func(), error) {
	client := s.client()
	return waiting(&ration.RedisStore{Client: client}, s), closing(client), nil
}

func waitInMemory(s setup) (ask, func(), error) {
	return waiting(new(ration.MemoryStore), s), func() {}, nil
}

func waiting(kept ration.Store, s setup) ask {
	b := &ration.Budget{Name: "bench", Limits: []ration.Limit{s.limit}, Store: kept}
	return func(ctx context.Context, key int) (time.Duration, error) {
		_, err := b.Wait(ctx, token(key), 1)
		return 0, err
	}
}

func token(key int) ration.Token { return ration.NewToken("token " + strconv.Itoa(key)) }

// pool returns so many accounts.
func pool(n int, l ration.Limit) (*store.Accounts, error) {
	var all []ration.Account
	for i := range n {
		all = append(all, ration.Account{ID: token(i).AccountID(), Limits: []ration.Limit{l}})
	}
	return store.NewAccounts(all...)
}
