package view

import (
	"context"
	"errors"

	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/store"
)

// A Steerable is a store in which people end what holds callers back.
type Steerable interface {
	// Describe says what there is, and those below are of [store.Store].
	Describe(ctx context.Context, budget string) (store.Description, error)
	// Pause ends that of a part.
	Pause(context.Context, store.PauseRequest) (store.PauseReply, error)
	// Quarantine ends that of a token.
	Quarantine(context.Context, store.QuarantineRequest) (store.PauseReply, error)
	// Resume ends pauses and quarantines.
	Resume(context.Context, store.ResumeRequest) (store.PauseReply, error)
	// Card ends a pace.
	Card(context.Context, store.CardRequest) (store.CardReply, error)
}

// Resume ends the pauses of an account, or those of all and the quarantines; and then their paces, in the name of who acts.
func Resume(ctx context.Context, kept Steerable, budget, account, by string) error {
	if _, err := kept.Resume(ctx, store.ResumeRequest{Budget: budget, Account: account}); err != nil {
		return err
	}
	return EndPaces(ctx, kept, budget, account, by)
}

// EndPaces ends the pace that is kept to beside the limits of an account, or of all. Workers change a pace each second while they look for a
// higher one, so it tries some times.
func EndPaces(ctx context.Context, kept Steerable, budget, account, by string) error {
	const most = 5
	for range most {
		d, err := kept.Describe(ctx, budget)
		if err != nil {
			return err
		}
		stay := false
		for _, a := range d.Accounts {
			limits, paced := pace.Split(a.Card.Limits)
			if paced == nil || account != "" && a.Account != account {
				continue
			}
			why := pace.ParseWhy(a.Card.Why, a.Card.Limits)
			why.Pace, why.By = nil, by
			reply, err := kept.Card(ctx, store.CardRequest{Budget: budget, Account: a.Account, Known: a.Card.Edition, KnownCard: d.Card.Version, Limits: limits, Why: why.Text()})
			if err != nil {
				return err
			}
			stay = stay || !reply.Changed
		}
		if !stay {
			return nil
		}
	}
	return errors.New("some accounts are kept to a pace still, which workers have changed meanwhile: try again")
}

// ResumeParts ends the pauses that [PartsOf] returns, and returns how many. One that was made longer meanwhile stays.
func ResumeParts(ctx context.Context, kept Steerable, d *store.Description, account, key string) (ended int, err error) {
	for _, p := range PartsOf(d, account, key) {
		reply, err := kept.Pause(ctx, store.PauseRequest{Budget: d.Budget, Account: p.Account, Key: p.Key, Replaces: p.Until, Kind: store.PauseServed})
		if err != nil {
			return ended, err
		}
		if reply.Version != reply.Before {
			ended++
		}
	}
	if ended == 0 {
		return 0, errors.New("no pause of that endpoint is in force, or it was made longer meanwhile")
	}
	return ended, nil
}

// TryToken ends the quarantines of a token in such a way that they stay known: one request of the fleet tries the token, and the others wait
// for what comes of it. If a Resume ended them, each caller would, and be rejected if the token is as it was.
func TryToken(ctx context.Context, kept Steerable, d *store.Description, token string) error {
	for _, q := range d.Quarantined {
		if q.Token != token || !q.Until.After(d.Now) || q.Probing {
			continue // a request tries it, or the next one does
		}
		if _, err := kept.Quarantine(ctx, store.QuarantineRequest{Budget: d.Budget, Token: token, Reason: q.Reason, Count: q.Count, Replaces: q.Until, Cause: q.Cause}); err != nil {
			return err
		}
	}
	return nil
}
