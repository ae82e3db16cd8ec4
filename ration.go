// Package ration keeps a fleet of API clients within the rate limits of a provider.
//
// A [Transport] is set as http.Client.Transport. Before a request leaves, the Transport
// books a slot for it in a log that a [Store] keeps for each account, waits for that
// slot, attaches the token and sends. Workers on many machines whose [Budget] has the
// same Name in the same Redis share one log, and so one quota.
//
//	store := &ration.RedisStore{Client: rdb}
//	budget := &ration.Budget{Name: "instagram", Limits: []ration.Limit{ration.PerHour(5000)}, Store: store}
//	pool := ration.NewPool(budget, ration.NewToken(secret1), ration.NewToken(secret2))
//	client := &http.Client{Transport: &ration.Transport{Pool: pool, Hosts: []string{"graph.instagram.com"}}}
//
// # Words
//
//   - A provider is the API that is called. It counts calls, and refuses them.
//   - A token is a credential. An account is what the provider counts for: by default
//     each token is an account of its own.
//   - A limit is at most Max units of cost in any Window.
//   - A booking is an entry in the log. Its slot is the instant at which the request may
//     leave. A grant is a booking whose slot has come.
//   - A refusal is the provider's 429, or its equivalent.
//   - A pause keeps requests from an account, an endpoint or an object after a refusal.
//
// # The rule
//
// A caller books once. The store answers with the slot, in the future if need be, and
// the caller sleeps until then. For a log t[0..n-1] of slots and a limit of Max units in
// Window, a booking of one unit gets the slot
//
//	max(now, t[n-1], t[n-Max]+Window)
//
// So no window of any alignment holds more than Max, requests leave in the order in which
// the store received their bookings, and nobody polls.
//
// This is [SlidingLog], the default. For providers that count in another way there are
// other values of [Algorithm]. A budget may have limits of several kinds; a booking gets
// the first slot that all of them admit.
//
// # Choosing what to call
//
//   - An HTTP client needs only [Transport]. [Transport.Provider] names the API, so that
//     its responses are understood: package presets has many.
//   - Other work calls [Budget.Wait] for one token, or [Pool.Take] for the token that is
//     free first. [Budget.Try] does not wait.
//   - A token whose secrets expire has a source: see [TokenFrom].
//   - [Budget.Remaining] and [Budget.Usage] return what the fleet has left. They book
//     nothing.
//   - Limits that cover a part of the requests have a Scope: see [Transport.Scopes] and
//     [WithScopes]. Requests that cost more than one unit: see [Transport.Cost] and
//     [WithCost]. Limits that count something else as well, such as tokens, have a Unit:
//     see [Transport.Units] and [WithUnits]. Quota reserved for urgent requests: see [Budget.Reserve] and
//     [WithReserve]. A limit that several tokens share: see [Budget.Shared].
//   - [Budget.Logger], [Budget.OnEvent] and [Transport.OnRefusal] report what an operator wants to
//     know. [Budget.Trace] and [WithTrace] tell why a caller waits, as [Grant].Waits and an
//     [ExhaustedError] do. What is tried again says [Transport.Retries].
//
// # What a Transport does with responses
//
// After a refusal the whole fleet pauses the affected account, endpoint or object, and
// the request is retried on another token or after the pause. A token that is expired or
// revoked is quarantined. Units that competing clients have spent are recorded in the
// log. If a response announces a different limit, the fleet adopts it.
package ration

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ration-go/ration/internal/memstore"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/rationtrace"
	"github.com/ration-go/ration/store"
)

// What programs name most often of the packages below, so that few need to import them.

// A Limit is at most Max units of cost in any Window. Package limit has its
// documentation.
type Limit = limit.Limit

// An Algorithm is how a provider counts the calls of a limit. Package limit compares the
// algorithms.
type Algorithm = limit.Algorithm

// The algorithms. SlidingLog is the zero value, and the one to take when nothing is
// known: no window of any alignment ever holds more than Max.
const (
	SlidingLog    = limit.SlidingLog
	StreamLog     = limit.StreamLog
	FixedWindow   = limit.FixedWindow
	SlidingWindow = limit.SlidingWindow
	SubWindows    = limit.SubWindows
	GCRA          = limit.GCRA
)

// PerSecond returns a limit of n units in any second.
func PerSecond(n int) Limit { return limit.PerSecond(n) }

// PerMinute returns a limit of n units in any minute.
func PerMinute(n int) Limit { return limit.PerMinute(n) }

// PerHour returns a limit of n units in any hour.
func PerHour(n int) Limit { return limit.PerHour(n) }

// PerDay returns a limit of n units in any 24 hours.
func PerDay(n int) Limit { return limit.PerDay(n) }

// ParseLimit reads a limit such as "5000/1h" or "3000/1m:gcra,burst=100", for
// configuration files and flags. Package limit has the grammar.
func ParseLimit(s string) (Limit, error) { return limit.Parse(s) }

// A Store keeps the logs of budgets. [RedisStore] keeps them for a fleet, [MemoryStore]
// for one process. To write another, see package store, which has the contract, and
// package storetest, which checks it.
type Store = store.Store

// A MemoryStore keeps logs in memory, for the goroutines of one process. It
// keeps the promises of [RedisStore] and gives the same slots. The zero
// MemoryStore is empty and ready. It must not be copied after first use.
//
// It loses nothing and its clock does not step, so it ignores the fields of a
// request that guard against losses and steps, and does not count workers.
//
// It starts no goroutine. Every booking removes some expired entries and
// accounts: an entry takes 24 bytes until its window has passed, and an
// account stays until a day later. Its clock is the monotonic one, so that steps of the
// machine's clock do not move it. In a bubble of testing/synctest it is the
// bubble's clock: a test of an hour of waits takes no time.
//
// Its methods are those of [Store].
type MemoryStore struct{ memory }

// memory is what MemoryStore has its methods from: a method of its own would copy what
// [Budget.Wait] asks and learns of a slot that has come.
type memory = memstore.Store

// An Account is what a provider counts for: one or several tokens, an application or an
// address. Programs name the type only to fill in a [SharedAccount].
type Account = store.Account

// Usage is what an account has used of each of its limits: see [Budget.Usage].
type Usage = store.Usage

// LimitUsage is what an account has used of one limit, and when the next units are free.
// It is an element of [Usage].
type LimitUsage = store.LimitUsage

// ErrExhausted matches, with errors.Is, every error that says that no slot comes within the
// longest wait that the caller allowed. The error itself is an [*ExhaustedError].
var ErrExhausted = store.ErrExhausted

// ErrStoreUnavailable matches, with errors.Is, every error that says that the store could
// not answer. It says nothing about the quota. The error itself is a [*StoreError].
var ErrStoreUnavailable = store.ErrStoreUnavailable

// An ExhaustedError says that the earliest slot lies beyond the longest wait that the
// caller allowed, and how long the wait would be.
type ExhaustedError = store.ExhaustedError

// A StoreError says why the store could not answer, and whether asking again can help.
type StoreError = store.StoreError

// A LimitsError says that this worker's limits for an account differ from the fleet's
// and have the same [Budget.Revision], so that nobody can tell which are right.
type LimitsError = store.LimitsError

// A Provider is what is known of an API: its limits, how it takes a token, and what its
// responses mean. Package presets has many; fill in one of your own for any other API.
type Provider = provider.Provider

// Feedback is what one response says about quotas. [FeedbackOf] returns it, for programs
// that want to log why a request was refused.
type Feedback = provider.Feedback

// requestOptions are what a context asks for. They are one value of the context, because
// every request looks for them.
type requestOptions struct {
	scopes      []string
	named       int // how many of them the program has named: the Provider has the others
	reserve     float64
	cost        int
	trace       *rationtrace.Trace // nil: none
	retries     *RetryPolicy       // nil: the Transport's
	hasReserve  bool
	hasCost     bool
	units       map[string]int    // what limits with a Unit count; nil: it was not said
	mayHaveMore bool              // units may have some that no limit counts
	keys        map[string]string // what limits with a Per count apart, not to be changed; nil: it was not said
	grant       []byte            // on which the request is sent, as a text; nil: one is to be taken
	labels      []string          // of the tokens that may serve it, in order; nil: any may
	affinity    string            // what should be served by one token; empty: nothing
	patience    time.Duration     // how much later than others that token's slot may be
}

type requestOptionsKey struct{}

// requestOptionsOf returns what the context asks for; nil: nothing.
func requestOptionsOf(ctx context.Context) *requestOptions {
	o, _ := ctx.Value(requestOptionsKey{}).(*requestOptions)
	return o
}

// scopesOf returns the scopes that the context asks for.
func scopesOf(ctx context.Context) []string {
	if o := requestOptionsOf(ctx); o != nil {
		return o.scopes
	}
	return nil
}

// withOption returns a context that asks for something more.
func withOption(ctx context.Context, set func(*requestOptions)) context.Context {
	var o requestOptions
	if parent := requestOptionsOf(ctx); parent != nil {
		o = *parent
	}
	set(&o)
	return context.WithValue(ctx, requestOptionsKey{}, &o)
}

// WithCost returns a context whose requests cost this many units when a [Transport] sends
// them. It replaces what [Transport.Cost] says.
func WithCost(ctx context.Context, units int) context.Context {
	return withOption(ctx, func(o *requestOptions) { o.cost, o.hasCost = units, true })
}

// WithUnits returns a context whose requests have so many of each unit that a limit counts beside cost: {"tokens": 900}, say, for
// limits with the [Limit].Unit "tokens". A unit that the map lacks is none. It replaces what [Transport.Units] says. Wait, Try and
// Take go by it too. A budget without such limits does not look at it. [Grant.Settle] tells afterwards what was used.
func WithUnits(ctx context.Context, units map[string]int) context.Context {
	own := make(map[string]int, len(units))
	maps.Copy(own, units)
	return withOption(ctx, func(o *requestOptions) { o.units = own })
}

// WithTrace returns a context whose requests and calls of Wait, Try and Take are told to the trace as
// well, beside [Budget.Trace]. It replaces a trace that the context has.
func WithTrace(ctx context.Context, trace *rationtrace.Trace) context.Context {
	return withOption(ctx, func(o *requestOptions) { o.trace = trace })
}

// WithScopes returns a context whose requests have these scopes and no others. A limit
// with a Scope covers a request only if the request has that scope: a limit on uploads,
// say. A scope is 1 to 32 letters, digits, '-', '_' and '.'.
func WithScopes(ctx context.Context, scopes ...string) context.Context {
	return withOption(ctx, func(o *requestOptions) { o.scopes, o.named = slices.Clone(scopes), len(scopes) })
}

// WithReserve returns a context whose requests leave this share of every limit, from 0
// to 0.999, to requests with a smaller reserve. It replaces [Budget.Reserve]: give urgent
// requests of a budget that has a reserve WithReserve(ctx, 0).
//
// With a reserve of 0.2 a request is booked as if Max were 80 % of what it is, so a request
// without a reserve finds a fifth of any window free of it, and leaves before those that wait
// for the next window. No slot that was granted is moved, so nobody starves.
//
// A request that alone costs more than the reserve leaves is not refused for ever: it is booked
// where nothing else counts, and takes of the reserve what it must. With a reserve of 0.3 a cost
// of 80 of 100 leaves once the window is empty, and leaves 20; and so does any request of a
// limit whose Max is 1.
func WithReserve(ctx context.Context, share float64) context.Context {
	return withOption(ctx, func(o *requestOptions) { o.reserve, o.hasReserve = share, true })
}

// WithKey returns a context whose requests have a value of a key: the route of a request, say, for limits with the [Limit].Per
// "route". An empty value is none: such a request counts under none of these limits. It comes before what the Provider's Keys
// say. Wait, Try, Take, Usage and Remaining go by it too. A budget without such limits does not look at it.
//
// Values are told apart exactly, and people see them as they are: of a path, leave secrets out, and what does not matter.
func WithKey(ctx context.Context, per, value string) context.Context {
	return withOption(ctx, func(o *requestOptions) {
		o.keys = maps.Clone(o.keys)
		if o.keys == nil {
			o.keys = make(map[string]string, 1)
		}
		o.keys[per] = value
	})
}

// WithTokens returns a context whose requests are served by the tokens of a pool that have one of these labels ([Token].Label), and by no
// others: those that may read a private repository, say. If the pool has none of them, or all are quarantined, the request fails with
// an error that matches [ErrNoToken]. Without labels any token does. Of an account that several tokens share, all must have such labels.
func WithTokens(ctx context.Context, labels ...string) context.Context {
	labels = slices.Clone(labels)
	slices.Sort(labels)
	return withOption(ctx, func(o *requestOptions) { o.labels = slices.Compact(labels) })
}

// WithAffinity returns a context whose requests are served by the token of a pool that has served the requests with that key before, as
// long as its slot is later than the best by no more than patience: an API that caches by token answers the pages of one conversation, or
// of one customer, from its cache. The process remembers the tokens of about 10,000 keys, each for an hour. An empty key asks for nothing.
func WithAffinity(ctx context.Context, key string, patience time.Duration) context.Context {
	return withOption(ctx, func(o *requestOptions) { o.affinity, o.patience = key, max(0, patience) })
}

// withKeysOf returns a context with what a Provider says of a request's keys, where the context does not say it.
func withKeysOf(ctx context.Context, said map[string]string) context.Context {
	return withOption(ctx, func(o *requestOptions) {
		if o.keys == nil {
			o.keys = said
			return
		}
		all := maps.Clone(said)
		maps.Copy(all, o.keys)
		o.keys = all
	})
}

// keysOf returns the values of keys that options say.
func keysOf(o *requestOptions) map[string]string {
	if o == nil {
		return nil
	}
	return o.keys
}
