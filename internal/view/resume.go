package view

import (
	"context"
	"errors"

	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/store"
)

// A Steerable is a store in which people end what holds callers back.
type Steerable interface {
	// Pause is that of [store.Store], and so are those below.
	Pause(context.Context, store.PauseRequest) (store.PauseReply, error)
	// Quarantine ends that of a token.
	Quarantine(context.Context, store.QuarantineRequest) (store.PauseReply, error)
	// Resume ends pauses and quarantines.
	Resume(context.Context, store.ResumeRequest) (store.PauseReply, error)
	// Card ends a pace.
	Card(context.Context, store.CardRequest) (store.CardReply, error)
}

// Resume ends the pauses of an account, or those of all and the quarantines; and the pace that is kept to beside limits, in the name of who
// acts. If somebody changes the limits at the same time the pace stays.
func Resume(ctx context.Context, kept Steerable, d *store.Description, account, by string) error {
	if _, err := kept.Resume(ctx, store.ResumeRequest{Budget: d.Budget, Account: account}); err != nil {
		return err
	}
	for _, a := range d.Accounts {
		limits, paced := pace.Split(a.Card.Limits)
		if paced == nil || account != "" && a.Account != account {
			continue
		}
		why := pace.ParseWhy(a.Card.Why, a.Card.Limits)
		why.Pace, why.By = nil, by
		if _, err := kept.Card(ctx, store.CardRequest{Budget: d.Budget, Account: a.Account, Known: a.Card.Edition, KnownCard: d.Card.Version, Limits: limits, Why: why.Text()}); err != nil {
			return err
		}
	}
	return nil
}

// ResumeParts ends the pauses that [PartsOf] returns, and returns how many there were. One that was made longer meanwhile stays.
func ResumeParts(ctx context.Context, kept Steerable, d *store.Description, account, key string) (ended int, err error) {
	all := PartsOf(d, account, key)
	if len(all) == 0 {
		return 0, errors.New("no pause of that endpoint is known")
	}
	for _, p := range all {
		if _, err := kept.Pause(ctx, store.PauseRequest{Budget: d.Budget, Account: p.Account, Key: p.Key, Replaces: p.Until, Kind: store.PauseServed}); err != nil {
			return ended, err
		}
		ended++
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
