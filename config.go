package ration

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ration-go/ration/internal/limits"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
)

// A ConfigError says which field has a value that cannot be used, and what to write instead. Every error of a configuration is one;
// nothing was booked or sent. Match it with errors.As.
type ConfigError struct {
	// Budget is the budget's name. Empty: it is not about one, or the name is what is wrong.
	Budget string
	// Field is the field, as a program writes it: "Budget.Limits[1]", "Token.Label" or "Transport.Retries.Within".
	Field string
	// Err says what is wrong with it.
	Err error
}

// Error names the budget and the field, and says what to write.
func (e *ConfigError) Error() string {
	text := strings.TrimPrefix(e.Err.Error(), "ration: ")
	if e.Budget == "" || strings.HasPrefix(text, "budget ") {
		return "ration: " + text
	}
	return fmt.Sprintf("ration: budget %q: %s", e.Budget, text)
}

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// Validate returns what is wrong with the budget's fields, all of it joined: each is a [*ConfigError]. Nil: nothing is. It asks no
// store, so a program can call it when it starts. Whoever books is told the same.
func (b *Budget) Validate() error {
	if b == nil {
		return &ConfigError{Field: "Budget", Err: errors.New("the Budget is nil")}
	}
	var all []error
	wrong := func(field, format string, args ...any) {
		all = append(all, &ConfigError{b.Name, "Budget." + field, fmt.Errorf("Budget."+field+format, args...)})
	}
	if err := store.ValidateBudgetName(b.Name); err != nil {
		all = append(all, &ConfigError{Field: "Budget.Name", Err: err})
	}
	if b.Margin > limit.MaxMargin {
		wrong("Margin", " is %v: it must be at most %v", b.Margin, limit.MaxMargin)
	}
	if b.MaxWait < 0 {
		wrong("MaxWait", " is %v: it must not be negative; Try does not wait", b.MaxWait)
	}
	if b.Revision < 0 {
		wrong("Revision", " is %d: it must not be negative", b.Revision)
	}
	if !(b.Reserve >= 0 && b.Reserve <= 0.999) { // NaN is not
		wrong("Reserve", " is %v: it must be from 0 to 0.999", b.Reserve)
	}
	if b.Outage < FailClosed || b.Outage > FailOpen {
		wrong("Outage", " is %d: it must be FailClosed, Divide or FailOpen", b.Outage)
	}
	if err := b.validateStore(); err != nil {
		all = append(all, err)
	}
	if err := validateLimits(b.Name, "Budget.Limits", b.Limits); err != nil {
		all = append(all, err)
	}
	for i := range b.Shared {
		if err := validateLimits(b.Name, fmt.Sprintf("Budget.Shared[%d].Limits", i), b.Shared[i].Limits); err != nil {
			all = append(all, err)
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return errors.Join(all...)
}

// validateStore returns what is wrong with the store.
func (b *Budget) validateStore() error {
	kept, isRedis := b.Store.(*RedisStore)
	switch {
	case b.Store == nil || isRedis && kept == nil:
		return &ConfigError{b.Name, "Budget.Store", errors.New("Budget.Store is nil: set a *RedisStore for a fleet, or new(ration.MemoryStore) for one process")}
	case isRedis:
		if err := kept.store().Validate(); err != nil {
			return &ConfigError{b.Name, "RedisStore.Client", err}
		}
	}
	return nil
}

// validateLimits returns what is wrong with any of the limits of a field.
func validateLimits(budget, field string, all []limit.Limit) error {
	for i, l := range all {
		if err := l.Validate(); err != nil {
			at := fmt.Sprintf("%s[%d]", field, i)
			return &ConfigError{budget, at, fmt.Errorf("%s: %w", at, err)}
		}
	}
	return nil
}

// badLimits returns what is wrong with the limits of a field that are right one by one.
func badLimits(budget, field string, err error) error {
	if err == nil {
		return nil
	}
	return &ConfigError{budget, field, err}
}

// Warnings are about what can be used and is most likely not what was meant. People are told once.

// warn tells people once of a field that most likely is not what was meant.
func (b *Budget) warn(field, format string, args ...any) {
	if text := fmt.Sprintf(format, args...); b.once.isNews("field " + text) {
		b.emit(Event{Kind: ConfigDoubtful, Field: field, Cause: text})
		go b.tell() // the caller may hold a lock
	}
}

// warnOfMargins warns of margins that take more than a third of what the limit allows.
func (b *Budget) warnOfMargins(field string, all []limit.Limit) {
	for i, l := range all {
		margin := l.Margin
		if margin == 0 {
			margin = b.Margin
		}
		if l.InFlight == 0 && margin > l.Window/2 {
			b.warn("Budget.Margin", "%s[%d] is %v, and a margin of %v is added to its window: only %d units leave in each %v. A margin is for the way to the provider; "+
				"leave it out, and it is %v", field, i, l, margin, l.Max, l.Window+margin, l.DefaultMargin())
		}
	}
}

// warnOfScopes warns of a request's scopes that no limit has, of those that the program has named, and of a request that no limit
// covers.
func (b *Budget) warnOfScopes(of *limits.List, scopes []string, o *requestOptions) {
	named := 0
	if o != nil {
		named = min(o.named, len(scopes))
	}
	for _, scope := range scopes[:named] {
		if !of.HasScope(scope) {
			b.warn("Limit.Scope", "requests have the scope %q, and no limit has it: is it misspelt? The limits have %s", scope, of.ScopesText())
		}
	}
	if of.OnlyScoped && !slices.ContainsFunc(scopes, of.HasScope) {
		b.warn("Budget.Limits", "requests with the scopes %q are sent without any limit, since each has a scope of its own: %s. Give a limit without a scope, "+
			"or the requests one of theirs", scopes, of.ScopesText())
	}
}
