package line_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/line"
)

type (
	caller   = line.Caller[int, *slot]
	errand   = line.Errand[int, *slot]
	slotLine = line.Line[int, *slot]
)

// A slot is one of a clerk's.
type slot struct {
	due    time.Time
	known  time.Time // when the line got it
	handed atomic.Int32
	back   atomic.Int32
	gone   line.Reason // why it was given back; the clerk's mu protects it
}

// Due implements line.Slot.
func (s *slot) Due() time.Time { return s.due }

var errTooLate = errors.New("no slot comes in time")

// A clerk books slots that are apart, as a store does that has room for one each apart.
type clerk struct {
	*shared
	line *slotLine // shared's mu protects it
}

// What clerks share whose lines exchange slots.
type shared struct {
	t        *testing.T
	exchange line.Exchange[int, *slot]
	apart    time.Duration
	early    time.Duration

	mu     sync.Mutex // protects all below
	taken  map[time.Time]*slot
	paused time.Time            // no slot is of use before
	way    func() time.Duration // how long a reply takes
	broken bool                 // the store does not answer
	lost   []*slot              // whose booking was lost
	all    []*slot
	asked  int
	closed int
}

func newClerk(t *testing.T, apart time.Duration) *clerk {
	return newClerkOf(&shared{t: t, apart: apart, taken: make(map[time.Time]*slot), way: func() time.Duration { return time.Millisecond }})
}

func newClerkOf(s *shared) *clerk {
	c := &clerk{shared: s}
	c.line = line.New(c, &s.exchange)
	return c
}

func (c *clerk) current() *slotLine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.line
}

func (c *clerk) questions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// free returns the first slot from an instant on that nobody has. It needs mu.
func (c *clerk) free(from time.Time) time.Time {
	at := from.Truncate(c.apart)
	if at.Before(from) {
		at = at.Add(c.apart)
	}
	for c.taken[at] != nil {
		at = at.Add(c.apart)
	}
	return at
}

// exchanges gives a slot back in place of which another is booked.
func (c *clerk) exchanges(s *slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.back.Add(1)
	delete(c.taken, s.due)
}

func (c *clerk) book(until time.Time) *slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	from := time.Now()
	if c.paused.After(from) {
		from = c.paused
	}
	at := c.free(from)
	if c.broken || !until.IsZero() && at.After(until) {
		return nil
	}
	s := &slot{due: at}
	c.taken[at] = s
	c.all = append(c.all, s)
	return s
}

// Book implements line.Clerk.
func (c *clerk) Book(e errand) {
	c.mu.Lock()
	way := c.way
	c.mu.Unlock()
	time.Sleep(way())
	if after := e.After; after.Slot != nil && (after.Reason != useless || c.reasonOf(after.Slot) != useless) {
		c.t.Errorf("a slot is booked after one that was dropped for %d, and given back for %d", after.Reason, c.reasonOf(after.Slot))
	}
	until := time.Time{}
	if e.For != nil {
		until = e.For.Until
	} else {
		c.exchanges(e.Instead)
	}
	s := c.book(until)
	time.Sleep(way())
	if s == nil {
		err := errTooLate
		if e.For == nil {
			err = line.ErrGone
		}
		c.current().Refused(e, err)
		return
	}
	s.known = time.Now()
	if e.For == nil {
		c.current().Exchanged(e, s, s.due.Before(e.Instead.due))
	} else {
		c.current().Booked(e, s)
	}
}

// Prepare implements line.Clerk.
func (c *clerk) Prepare(time.Time) {}

// Ahead implements line.Clerk.
func (c *clerk) Ahead() time.Duration { return time.Millisecond }

// Early implements line.Clerk.
func (c *clerk) Early() time.Duration { return c.early }

// Review implements line.Clerk.
func (c *clerk) Review(slots []*slot, due bool, early time.Duration) (dropped []line.Dropped[*slot]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range slots {
		if s.due.Before(c.paused) || c.isLost(s) {
			dropped = append(dropped, line.Dropped[*slot]{Slot: s, Reason: useless, Wait: 50 * time.Millisecond})
		}
	}
	return dropped
}

// Why a clerk or a caller drops a slot.
const (
	useless line.Reason = 1 + iota
	tooLate
)

func (c *clerk) isLost(s *slot) bool {
	for _, o := range c.lost {
		if o == s {
			return true
		}
	}
	return false
}

// GiveBack implements line.Clerk.
func (c *clerk) GiveBack(slots []line.Dropped[*slot]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range slots {
		s := d.Slot
		s.back.Add(1)
		s.gone = d.Reason
		delete(c.taken, s.due)
	}
}

func (c *clerk) reasonOf(s *slot) line.Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	return s.gone
}

// Close implements line.Clerk.
func (c *clerk) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
}

// wait has a caller wait until it has a slot, or its context ends. It returns the line in which it stood.
func (c *clerk) wait(ctx context.Context, one *caller, turn uint64) (*slot, *slotLine, error) {
	in := c.join(func(l *slotLine) bool { return l.Join(one, turn, line.Dropped[*slot]{}) })
	s, err := c.stand(ctx, in, one)
	return s, in, err
}

// join has a caller join the line, or another one if it is closed, and returns which.
func (c *clerk) join(joins func(*slotLine) bool) *slotLine {
	in := c.current()
	for ; !joins(in); in = c.current() {
		c.mu.Lock()
		if c.line == in {
			c.line = line.New(c, &c.exchange)
		}
		c.mu.Unlock()
	}
	return in
}

func (c *clerk) stand(ctx context.Context, in *slotLine, one *caller) (*slot, error) {
	for {
		select {
		case s := <-one.Handed():
			s.handed.Add(1)
			left := time.Until(s.due)
			if left > c.early {
				c.t.Errorf("a slot was handed over %v early", left)
			}
			select {
			case <-time.After(left):
				return s, nil
			case <-ctx.Done():
				if left <= 0 {
					return s, nil
				}
				s.handed.Add(-1)
				in.Leave(one, s)
				return nil, ctx.Err()
			}
		case <-one.Booked():
		case err := <-one.Refused():
			return nil, err
		case <-ctx.Done():
			in.Leave(one, nil)
			return nil, ctx.Err()
		}
	}
}

func TestCallersLeaveInTheOrderInWhichTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t, time.Second)
		var left []int
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				_, _, err := c.wait(t.Context(), &caller{Of: i}, uint64(i))
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				left = append(left, i)
			})
			time.Sleep(3 * time.Millisecond)
		}
		all.Wait()
		for i, who := range left {
			require.Equal(t, i, who)
		}
		require.Equal(t, 20, c.questions())
	})
}

// Slots are handed over early where their callers take long to wake, and each caller waits for its own.
func TestSlotsAreHandedOverEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t, time.Second)
		c.early = 7 * time.Millisecond
		one := &caller{}
		c.book(time.Time{}) // which leaves the next slot to the caller
		require.True(t, c.line.Join(one, 1, line.Dropped[*slot]{}))
		s := <-one.Handed()
		require.Equal(t, c.early, time.Until(s.due))
	})
}

// A caller that has taken a slot early and gives up before it is due leaves it to the next one.
func TestASlotThatWasTakenEarlyIsTheNextOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t, time.Second)
		c.early = 7 * time.Millisecond
		c.book(time.Time{}) // which leaves the next slots to the callers
		one, two := &caller{}, &caller{}
		require.True(t, c.line.Join(one, 1, line.Dropped[*slot]{}))
		require.True(t, c.line.Join(two, 2, line.Dropped[*slot]{}))
		s := <-one.Handed()
		c.line.Leave(one, s)
		require.Same(t, s, <-two.Handed())
		require.Equal(t, c.early, time.Until(s.due))
		time.Sleep(c.apart)
		require.Equal(t, 3, c.questions(), "nobody booked again")
		require.EqualValues(t, 1, c.all[2].back.Load(), "what was booked for the second one")
	})
}

// Half of the callers give up while they wait: their slots are the others', and what is left over is given back.
func TestASlotOfACallerThatGivesUpIsTheNextOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t, time.Second)
		begun := time.Now()
		var stay, leave sync.WaitGroup
		leaving, stop := context.WithCancel(t.Context())
		for i := range 20 {
			of, ctx := &stay, t.Context()
			if i%2 == 0 {
				of, ctx = &leave, leaving
			}
			of.Go(func() { _, _, _ = c.wait(ctx, &caller{}, uint64(i)) })
		}
		time.Sleep(200 * time.Millisecond)
		stop()
		leave.Wait()
		stay.Wait()
		require.Less(t, time.Since(begun), 11*time.Second)
		require.Equal(t, 20, c.questions(), "nobody booked again")
	})
}

// A caller that gives up and comes again finds the slot that it had: nothing is booked and nothing given back.
func TestWhoGivesUpAndComesAgainCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t, 10*time.Second)
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() { _, _, _ = c.wait(t.Context(), &caller{}, uint64(i)) })
		}
		time.Sleep(time.Second)
		asked := c.questions()
		for i := range 50 {
			ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
			_, _, err := c.wait(ctx, &caller{}, uint64(10+i))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			stop()
		}
		require.Equal(t, asked+1, c.questions())
		all.Wait()
		time.Sleep(time.Second)
		require.Equal(t, 1, count(c, (*slot).wasGivenBack))
	})
}

func (s *slot) wasGivenBack() bool { return s.back.Load() > 0 }

func count(c *clerk, is func(*slot) bool) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all {
		if is(s) {
			n++
		}
	}
	return n
}

func TestWhoCannotHaveASlotInTimeIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t, time.Second)
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() { _, _, _ = c.wait(t.Context(), &caller{}, uint64(i)) })
		}
		time.Sleep(200 * time.Millisecond)
		begun := time.Now()
		_, _, err := c.wait(t.Context(), &caller{Until: begun.Add(5 * time.Second)}, 10)
		require.ErrorIs(t, err, errTooLate)
		require.Equal(t, 2*time.Millisecond, time.Since(begun), "the way to the store, and no wait for company")
		all.Wait()
	})
}

// A slot that is dropped leaves its caller the next one's, which comes too late for it: it is told so at once, and the next one keeps its
// slot.
func TestWhoCannotHaveASlotInTimeAnyMoreIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClerk(t, 10*time.Second)
		begun := time.Now().Truncate(c.apart)
		wait := func(turn uint64, until time.Duration, want error, after time.Duration) func() {
			return func() {
				_, _, err := c.wait(t.Context(), &caller{Until: begun.Add(until)}, turn)
				assert.ErrorIs(t, err, want, turn)
				assert.Equal(t, after, time.Since(begun).Truncate(time.Second), turn)
			}
		}
		c.book(time.Time{})
		time.Sleep(time.Second)
		var all sync.WaitGroup
		all.Go(wait(1, 15*time.Second, errTooLate, 9*time.Second))
		time.Sleep(5 * time.Second)
		all.Go(wait(2, 21*time.Second, nil, 20*time.Second))
		time.Sleep(3 * time.Second)
		c.mu.Lock()
		c.paused = begun.Add(19 * time.Second)
		c.mu.Unlock()
		c.current().Changed()
		all.Wait()
	})
}

// Any arrivals in some lines, give-ups, late callers, pauses, lost bookings, slots that are handed over early or not, and a store that
// answers slowly or not at all: no slot is two callers', nobody is overtaken in a line but by as much as slots are early, no slot that
// is due waits for a caller who is there, and in the end each slot was either handed over or given back.
func TestAnyHistory(t *testing.T) {
	histories := 1000
	if testing.Short() { // with the race detector many goroutines that have ended take its memory, and one run of ten crashed in it
		histories = 200
	}
	for range histories {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			history(t, rand.New(rand.NewPCG(seed, 1)))
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A visit is a caller's in a history.
type visit struct {
	in          int // which line
	came, ended time.Time
	until       time.Time // when it must have been told, about; zero: never
	got, late   bool
}

// soonTold is how long after its end a wait may still be answered: a store that takes 300 ms each way may be asked shortly before, and
// once more after that, when others have been.
const soonTold = 1800 * time.Millisecond

func history(t *testing.T, r *rand.Rand) {
	apart := time.Duration(1+r.IntN([]int{20, 200, 1500}[r.IntN(3)])) * time.Millisecond
	c := newClerk(t, apart)
	c.early = []time.Duration{0, 7 * time.Millisecond}[r.IntN(2)]
	lines := []*clerk{c}
	for len(lines) < []int{1, 3, 8}[r.IntN(3)] {
		lines = append(lines, newClerkOf(c.shared))
	}
	any := func() *slotLine { return lines[r.IntN(len(lines))].current() }
	var all sync.WaitGroup
	var visits []*visit
	come := func(patience time.Duration, deadline bool) {
		one, v := &caller{}, &visit{in: r.IntN(len(lines)), came: time.Now(), late: r.IntN(10) == 0}
		c := lines[v.in]
		turn := uint64(len(visits))
		visits = append(visits, v)
		ctx, stop := context.WithCancel(context.Background())
		if patience > 0 {
			if r.IntN(2) == 0 { // it gives up when a slot comes
				patience = v.came.Add(patience).Truncate(apart).Add(apart).Sub(v.came)
			}
			if ctx, stop = context.WithTimeout(context.Background(), patience); deadline && r.IntN(2) == 0 {
				ctx = context.Background() // it relies on being told
			}
		}
		if deadline {
			one.Until = v.came.Add(patience)
			v.until = one.Until
		}
		late := v.late
		all.Go(func() {
			defer stop()
			s, in, err := c.wait(ctx, one, turn)
			if err == nil && late {
				time.Sleep(20 * time.Millisecond) // it is too late for its slot
				s.handed.Add(-1)
				missed := line.Dropped[*slot]{Slot: s, Reason: tooLate}
				if !in.ComeBack(one, missed) {
					in = c.join(func(l *slotLine) bool { return l.Join(one, turn, missed) })
				}
				s, err = c.stand(ctx, in, one)
			}
			if v.ended, v.got = time.Now(), err == nil; err == nil && v.ended.Before(s.due) {
				t.Errorf("a slot was handed over %v early", s.due.Sub(v.ended))
			} else if err == nil && !late && v.ended.After(s.due) && v.ended.After(s.known) && v.ended.After(v.came) {
				t.Errorf("a slot was handed over %v late", v.ended.Sub(s.due))
			}
		})
		synctest.Wait()
	}
	for range 60 {
		switch n := r.IntN(20); {
		case n < 9:
			for range 1 + r.IntN(5) {
				come(0, false)
			}
		case n < 12:
			come(time.Duration(1+r.IntN(2000))*time.Millisecond, false)
		case n < 13:
			come(time.Duration(1+r.IntN(2000))*time.Millisecond, true)
		case n < 14:
			c.mu.Lock()
			c.paused = time.Now().Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			c.mu.Unlock()
			for _, of := range lines {
				of.current().Changed()
			}
		case n < 15:
			any().Offer(time.Duration(r.IntN(100)) * time.Millisecond)
		case n < 16:
			c.mu.Lock()
			if len(c.all) > 0 {
				c.lost = append(c.lost, c.all[r.IntN(len(c.all))])
			}
			c.mu.Unlock()
			for _, of := range lines {
				of.current().Changed()
			}
		case n < 17:
			ways := []time.Duration{0, time.Millisecond, 300 * time.Millisecond}
			way := ways[r.IntN(3)]
			c.mu.Lock()
			c.way = func() time.Duration { return way }
			c.mu.Unlock()
		default:
			time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond)
		}
	}
	all.Wait()
	time.Sleep(5 * time.Second) // what was left over
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all {
		if n := s.handed.Load() + s.back.Load(); n != 1 {
			t.Errorf("a slot was handed over %d times, and given back %d times", s.handed.Load(), s.back.Load())
		}
	}
	for i, v := range visits {
		if over := v.ended.Sub(v.until); !v.until.IsZero() && !v.late && over > soonTold {
			t.Errorf("%d waited %v longer than it may", i, over)
		}
	}
	for i, first := range visits {
		for j, v := range visits[i+1:] {
			if v.in == first.in && v.got && !v.late && !first.late && v.ended.Add(c.early).Before(first.ended) && first.came.Before(v.ended) {
				t.Errorf("%d got a slot at %v, and %d had none until %v", i+1+j, v.ended, i, first.ended)
			}
		}
	}
	require.Positive(t, c.closed)
}
