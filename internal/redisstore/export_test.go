package redisstore

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
