package waiters_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/waiters"
)

// accounts are the IDs that a caller may be charged to.
type accounts []string

func (a accounts) Has(account string) bool { return slices.Contains(a, account) }

// callers wait in a queue, and take a free slot if there is one.
type callers struct {
	queue waiters.Queue
	all   sync.WaitGroup

	mu   sync.Mutex // protects all below
	free map[string][]time.Duration
	took []string
}

var began = time.Unix(1_800_000_000, 0)

// wait has a caller wait for a slot until one is offered and taken, or for a minute.
func (c *callers) wait(name string, slot time.Duration, of accounts, kind string) {
	c.all.Go(func() {
		for until := time.Now().Add(time.Minute); ; {
			w := &waiters.Waiter{Slot: began.Add(slot), Accounts: of, Kind: kind}
			c.queue.Join(w, c.queue.News())
			select {
			case <-w.Offered():
				c.queue.Leave(w)
				earlier, found := c.take(of, slot)
				if found {
					c.mu.Lock()
					c.took = append(c.took, fmt.Sprint(name, " ", earlier))
					c.mu.Unlock()
					slot = earlier
				}
				w.Answer(found)
			case <-time.After(time.Until(until)):
				c.queue.Leave(w)
				return
			}
		}
	})
}

// take takes the first free slot that is earlier than the caller's.
func (c *callers) take(of accounts, slot time.Duration) (earlier time.Duration, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, account := range of {
		if free := c.free[account]; len(free) > 0 && free[0] < slot {
			c.free[account] = free[1:]
			return free[0], true
		}
	}
	return 0, false
}

// taken returns which callers took which slots.
func (c *callers) taken() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.took)
}

// frees has slots be free.
func (c *callers) frees(account string, slots ...time.Duration) {
	c.mu.Lock()
	if c.free == nil {
		c.free = make(map[string][]time.Duration)
	}
	c.free[account] = append(c.free[account], slots...)
	c.mu.Unlock()
	c.queue.Free(account)
}

func inBubble(t *testing.T, test func(t *testing.T, c *callers)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := new(callers)
		test(t, c)
		c.all.Wait()
	})
}

func TestTheLastCallersMoveForward(t *testing.T) {
	inBubble(t, func(t *testing.T, c *callers) {
		for i := range 10 {
			c.wait(fmt.Sprint("caller ", i), time.Duration(i)*time.Minute, accounts{"a"}, "")
		}
		synctest.Wait()
		c.frees("a", 90*time.Second, 100*time.Second, 110*time.Second)
		time.Sleep(250 * time.Millisecond)
		require.Len(t, c.taken(), 3)
		for _, last := range []string{"caller 9 ", "caller 8 ", "caller 7 "} {
			require.True(t, slices.ContainsFunc(c.taken(), func(took string) bool { return strings.HasPrefix(took, last) }), c.taken())
		}
	})
}

func TestCallersAreAskedThatWaitForTheAccount(t *testing.T) {
	inBubble(t, func(t *testing.T, c *callers) {
		c.wait("before", time.Minute, accounts{"a"}, "")
		c.wait("of another account", 9*time.Minute, accounts{"b"}, "")
		c.wait("of both", 8*time.Minute, accounts{"a", "b"}, "")
		synctest.Wait()
		c.frees("a", 90*time.Second)
		time.Sleep(250 * time.Millisecond)
		require.Equal(t, []string{"of both 1m30s"}, c.taken())
	})
}

// Of a kind that finds nothing no more callers are asked, but those of other kinds are.
func TestAKindThatFindsNothingKeepsNobodyElseWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, c *callers) {
		for i := range 100 {
			c.wait("large", time.Duration(10+i)*time.Minute, nil, "finds nothing")
		}
		c.wait("small", 5*time.Minute, accounts{"a"}, "small")
		synctest.Wait()
		c.frees("a", time.Minute)
		c.queue.Free("")
		time.Sleep(250 * time.Millisecond)
		require.Equal(t, []string{"small 1m0s"}, c.taken())
	})
}

// What becomes free between a caller's booking and its Join is offered too.
func TestACallerThatJoinsLateMissesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, c *callers) {
		booked := c.queue.News()
		c.queue.Free("a")
		w := &waiters.Waiter{Slot: began.Add(time.Minute), Accounts: accounts{"a"}}
		c.queue.Join(w, booked)
		select {
		case <-w.Offered():
			w.Answer(false)
		case <-time.After(250 * time.Millisecond):
			t.Error("nothing was offered")
		}
	})
}

// A caller that leaves with an offer declines it, so that others are asked.
func TestACallerThatLeavesDeclines(t *testing.T) {
	inBubble(t, func(t *testing.T, c *callers) {
		gone := &waiters.Waiter{Slot: began.Add(time.Hour), Accounts: accounts{"a"}, Kind: "gone"}
		c.queue.Join(gone, c.queue.News())
		c.wait("other", time.Minute, accounts{"a"}, "other")
		synctest.Wait()
		c.frees("a", time.Second)
		time.Sleep(150 * time.Millisecond) // it was offered the slot
		c.queue.Leave(gone)
		time.Sleep(100 * time.Millisecond)
		require.Equal(t, []string{"other 1s"}, c.taken())
	})
}

func TestWhatIsFreeLaterIsOfferedThen(t *testing.T) {
	inBubble(t, func(t *testing.T, c *callers) {
		c.wait("caller", time.Hour, accounts{"a"}, "")
		synctest.Wait()
		c.mu.Lock()
		c.free = map[string][]time.Duration{"a": {time.Minute}}
		c.mu.Unlock()
		c.queue.FreeAfter(10 * time.Second)
		c.queue.FreeAfter(20 * time.Second) // for which the first does
		time.Sleep(10 * time.Second)
		require.Empty(t, c.taken())
		time.Sleep(250 * time.Millisecond)
		require.Equal(t, []string{"caller 1m0s"}, c.taken())
	})
}
