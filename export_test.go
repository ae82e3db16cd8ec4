package ration

import "time"

// SetClock makes now stand for the store's clock in all that b asks of its
// store, so that a bubble of testing/synctest drives a real Redis.
func (b *Budget) SetClock(now func() time.Time) { b.now = now }
