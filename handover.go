package ration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ration-go/ration/store"
)

// A grant may be taken in one process, and what came of it be told to another one: a proxy that hands out slots is restarted, or is one of
// several behind one name.

// A handedGrant is a grant as it is written for another process: what its booking is, without any secret.
type handedGrant struct {
	Token   string          `json:"t"` // its ID
	Account string          `json:"a"`
	ID      store.BookingID `json:"i"`
	Slot    int64           `json:"s"` // in microseconds, as Now is
	Now     int64           `json:"n"`
	Entry   []byte          `json:"e"`
}

// MarshalText returns the grant as a text for another process of the fleet, which gives it to [WithGrant]. It has no secret, and nobody
// can tell whether it is genuine: sign it if it leaves the fleet. The zero Grant is an error.
func (g Grant) MarshalText() ([]byte, error) {
	if g.budget == nil || g.account == nil {
		return nil, errors.New("ration: MarshalText: the grant is zero")
	}
	// Which cannot fail.
	text, _ := json.Marshal(handedGrant{g.Token.ID(), g.account.ID, g.id, g.Slot.UnixMicro(), g.now.UnixMicro(), []byte(g.entry)})
	return base64.RawURLEncoding.AppendEncode(nil, text), nil
}

// WithGrant returns a context whose request is sent on a grant that was taken before, in this process or another one of the fleet, and
// is given as its [Grant.MarshalText]. The [Transport] books nothing, retries nothing, and learns from the response as ever: so a program that sends its
// requests itself tells the fleet what came of them, by a Base that returns the response. The request must be as it was when the
// grant was taken: its cost, scopes, units and keys are those that were booked. A text that is none, or of a token that the pool
// lacks, is an error.
func WithGrant(ctx context.Context, text []byte) context.Context {
	return withOption(ctx, func(o *requestOptions) { o.grant = slices.Clone(text) })
}

// granted returns the grant of a text for a request of that cost.
func (p *Pool) granted(ctx context.Context, text []byte, cost int) (Grant, error) {
	var handed handedGrant
	raw, err := base64.RawURLEncoding.AppendDecode(nil, text)
	if err == nil {
		err = json.Unmarshal(raw, &handed)
	}
	if err != nil {
		return Grant{}, fmt.Errorf("ration: WithGrant: the text is not that of a grant: %w", err)
	}
	tokens := p.Tokens()
	at := slices.IndexFunc(tokens, func(t Token) bool { return t.id == handed.Token })
	if at < 0 {
		return Grant{}, fmt.Errorf("ration: WithGrant: the pool has no token %q", handed.Token)
	}
	w := waiter{Grant: Grant{Token: tokens[at], Cost: cost, budget: p.budget}, options: requestOptionsOf(ctx)}
	if err := w.findAccounts(); err != nil {
		return Grant{}, err
	}
	account := &w.accounts.Each[0]
	if account.ID != handed.Account {
		return Grant{}, fmt.Errorf("ration: WithGrant: token %q is of account %q here, and of %q where the grant was taken", handed.Token, account.ID, handed.Account)
	}
	if w.scopes, _, err = p.budget.bookOptions(w.options); err != nil {
		return Grant{}, err
	}
	w.id, w.account, w.entry = handed.ID, account, string(handed.Entry)
	w.Slot, w.now = time.UnixMicro(handed.Slot), time.UnixMicro(handed.Now)
	w.soonest = time.Now() // when it was sent is not known
	return w.Grant, nil
}
