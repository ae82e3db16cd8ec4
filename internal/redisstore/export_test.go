package redisstore

import "time"

// Waiting counts the bookings that stand in a queue.
func (s *Store) Waiting() int {
	s.batcher.mu.Lock()
	defer s.batcher.mu.Unlock()
	n := 0
	for _, q := range s.batcher.queues {
		for _, in := range q.batches {
			n += len(in.calls)
		}
	}
	return n
}

// QuietAfter sets how long a subscription may be silent before it is tried.
func (s *Store) QuietAfter(quiet time.Duration) { s.watchers.quiet = quiet }

// Subscribed reports whether there is a subscription.
func (s *Store) Subscribed() bool {
	s.watchers.mu.Lock()
	defer s.watchers.mu.Unlock()
	return s.watchers.pubsub != nil
}
