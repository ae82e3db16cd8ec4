package redisstore

// Waiting counts the bookings that stand in a queue.
func (s *Store) Waiting() int {
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
