package ration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A remoteStore is in no process, as far as the budget knows.
type remoteStore struct{ Store }

// A caller that gets its token late, since others hold the pool, is late for its slot, and knows it.
func TestWhoWaitsForItsTokenKnowsThatItIsLate(t *testing.T) {
	b := &Budget{Name: "b", Limits: []Limit{PerMinute(10)}, Store: remoteStore{new(MemoryStore)}}
	p := NewPool(b, NewToken("a"))
	accounts, err := p.list(nil)
	require.NoError(t, err)
	w := waiter{Grant: Grant{budget: b, booked: booked{accounts: accounts, account: &accounts.accounts[0]}}, pool: p, due: time.Now()}
	const held = 50 * time.Millisecond
	p.mu.Lock()
	time.AfterFunc(held, p.mu.Unlock)
	w.leave()
	require.GreaterOrEqual(t, w.Late, held)
	require.Equal(t, NewToken("a").ID(), w.Token.ID())
}
