package ration

import (
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/store"
)

// What programs name most often of the packages below, so that few need to import them.

// A Limit is at most Max units of cost in any Window. Package limit has its
// documentation.
type Limit = limit.Limit

// An Algorithm is how a provider counts the calls of a limit. Package limit compares
// them.
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
// for one process. Who writes another finds the contract in package store, and a suite
// that checks it in package storetest.
type Store = store.Store

// An Account is whose quota tokens spend.
type Account = store.Account

// Usage is what is used of one account, as [Budget.Usage] tells it.
type Usage = store.Usage

// LimitUsage is what is used of one limit.
type LimitUsage = store.LimitUsage

// ErrExhausted is matched, with errors.Is, by every error that says that no
// slot came within the longest wait. The error itself is an [*ExhaustedError].
var ErrExhausted = store.ErrExhausted

// ErrStoreUnavailable is matched, with errors.Is, by every error that says
// that the store could not answer. It says nothing about the quota. The error
// itself is a [*StoreError].
var ErrStoreUnavailable = store.ErrStoreUnavailable

// An ExhaustedError says that the earliest slot lies beyond the longest wait that the
// caller allowed, and when it is.
type ExhaustedError = store.ExhaustedError

// A StoreError says that the store could not answer, and whether to ask again can help.
type StoreError = store.StoreError

// A LimitsError says that this worker's limits for an account differ from the fleet's,
// and have the same revision.
type LimitsError = store.LimitsError

// A Provider is what is known of an API: its limits, how it takes a token, and what its
// responses mean. Package presets has those of many APIs.
type Provider = provider.Provider

// Feedback is what one response says about quotas: see [FeedbackOf].
type Feedback = provider.Feedback

// A Reason is why a request was refused. Package provider has the constants.
type Reason = provider.Reason

// A Scope is whom a limit is about: a token, an app, an address. Package provider has
// the constants.
type Scope = provider.Scope
