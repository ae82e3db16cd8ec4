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

// A Reason is why a request was refused. Compare [Feedback], [Event] or [QuarantinedToken]
// with the constants of package provider, such as provider.ReasonQuota.
type Reason = provider.Reason

// A Scope is whom a refusal affects: a token, an application, an address. A
// [SharedAccount] has one. Package provider has the constants.
type Scope = provider.Scope
