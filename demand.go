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

type demandKey int

const (
	scopesKey demandKey = iota
	keepKey
	costKey
)

// WithScopes returns a context whose requests have the scopes, and no others: a
// limit whose Scope is one of them covers them too.
func WithScopes(ctx context.Context, scopes ...string) context.Context {
	return context.WithValue(ctx, scopesKey, slices.Clone(scopes))
}

// WithKeep returns a context whose requests leave a share of every limit, from 0
// to 0.999, to requests that keep less back, in place of [Budget.Keep].
func WithKeep(ctx context.Context, share float64) context.Context {
	return context.WithValue(ctx, keepKey, share)
}

// WithCost returns a context whose requests cost so many units when a
// [Transport] sends them, in place of what Transport.Cost says.
func WithCost(ctx context.Context, units int) context.Context {
	return context.WithValue(ctx, costKey, units)
}

// demand returns what the context asks for.
func (b *Budget) demand(ctx context.Context) (demand, error) {
	var d demand
	if scopes, found := ctx.Value(scopesKey).([]string); found {
		d.scopes = scopes
	}
	for _, scope := range d.scopes {
		if !validScope(scope) {
			return demand{}, fmt.Errorf("ration: scope %q: it must be 1 to 32 letters, digits, '-', '_' and '.'", scope)
		}
	}
	share := b.Keep
	if own, found := ctx.Value(keepKey).(float64); found {
		share = own
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
