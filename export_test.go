package ration

import "time"

// SetClock makes now stand for the store's clock in all that b asks of its
// store, so that a bubble of testing/synctest drives a real Redis.
func (b *Budget) SetClock(now func() time.Time) { b.now = now }

// Waiting counts the bookings that stand in a queue.
func (s *RedisStore) Waiting() int {
	s.combiner.mu.Lock()
	defer s.combiner.mu.Unlock()
	n := 0
	for _, q := range s.combiner.queues {
		for _, in := range q.waiting {
			n += len(in.seats)
		}
	}
	return n
}
