package ration

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// A demand is what one caller asks for, beside its cost.
type demand struct {
	scopes []string
	keep   int // in thousandths
}

// An asking is what a context asks for: one value, because a request looks for it.
type asking struct {
	scopes []string
	keep   float64
	cost   int
	keeps  bool // keep is said
	costs  bool // cost is said
}

type askingKey struct{}

// askingOf returns what the context asks for; nil: nothing.
func askingOf(ctx context.Context) *asking {
	a, _ := ctx.Value(askingKey{}).(*asking)
	return a
}

// with returns a context that asks for something more.
func with(ctx context.Context, set func(*asking)) context.Context {
	var a asking
	if known := askingOf(ctx); known != nil {
		a = *known
	}
	set(&a)
	return context.WithValue(ctx, askingKey{}, &a)
}

// WithScopes returns a context whose requests have the scopes, and no others: a
// limit whose Scope is one of them covers them too.
func WithScopes(ctx context.Context, scopes ...string) context.Context {
	return with(ctx, func(a *asking) { a.scopes = slices.Clone(scopes) })
}

// WithKeep returns a context whose requests leave a share of every limit, from 0
// to 0.999, to requests that keep less back, in place of [Budget.Keep].
func WithKeep(ctx context.Context, share float64) context.Context {
	return with(ctx, func(a *asking) { a.keep, a.keeps = share, true })
}

// WithCost returns a context whose requests cost so many units when a
// [Transport] sends them, in place of what Transport.Cost says.
func WithCost(ctx context.Context, units int) context.Context {
	return with(ctx, func(a *asking) { a.cost, a.costs = units, true })
}

// demand returns what the context asks for.
func (b *Budget) demand(ctx context.Context) (demand, error) {
	if b == nil {
		return demand{}, b.check()
	}
	var d demand
	share := b.Keep
	if a := askingOf(ctx); a != nil {
		d.scopes = a.scopes
		if a.keeps {
			share = a.keep
		}
	}
	for _, scope := range d.scopes {
		if !validScope(scope) {
			return demand{}, fmt.Errorf("ration: scope %q: it must be 1 to 32 letters, digits, '-', '_' and '.'", scope)
		}
	}
	if !(share >= 0 && share <= 0.999) {
		return demand{}, fmt.Errorf("ration: Keep is %v: it must be from 0 to 0.999", share)
	}
	d.keep = int(math.Ceil(share*1000 - 1e-9))
	return d, nil
}

// NewAccount returns an account of that name, for [Budget.Shared]: an application,
// or an address from which all requests come. Its ID is a digest of the name, as
// for Token.Account, so that tokens of that Account are charged to it too.
func NewAccount(name string, limits ...Limit) Account {
	return Account{ID: digest("", "account", name), Limits: limits}
}
