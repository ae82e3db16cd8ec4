package clock

import "time"

// How late a caller leaves after its slot is known no better than where the store's clock stands. So a process asks for the time before
// its first booking: a first reply is slow, because it makes a connection and loads a script, and a caller that leaves with it would
// be late by all of that and not know it.
const (
	// questions is how often a process asks at most. The quickest reply counts.
	questions = 8
	// known is how quick a reply must be for the process to ask no more, or share of how late a caller may leave.
	known, share = time.Millisecond, 4
	// patience bounds how long the process goes on asking a store that is far away, or busy.
	patience = 250 * time.Millisecond
)

// Learn asks for the time, until a reply comes as quickly as callers need that may leave so late after their slots. The function asks
// once, and places the answer. An error is the function's. One caller at a time may learn.
func (c *Clock) Learn(tolerance time.Duration, ask func() error) error {
	begun, enough := time.Now(), max(known, tolerance/share)
	for range questions {
		if err := ask(); err != nil {
			return err
		}
		if c.Away.Value() <= enough || time.Since(begun) > patience {
			break
		}
	}
	c.Learned.Store(true)
	return nil
}
