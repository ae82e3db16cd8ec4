package ration

import (
	"context"
	"time"
)

// An outcome is how a caller's sleep ended, or why a slot was dropped.
type outcome int

const (
	completed       outcome = iota // zero, as a line.Reason of a good slot
	slotMissed                     // the caller was late for its slot
	slotLost                       // the account was paused meanwhile, or the booking was lost
	slotPaused                     // the account was paused beyond the slot, which lies ahead
	slotResumed                    // the account was resumed since it was booked, and may have an earlier slot
	contextEnded                   // the caller gives up
	accountsChanged                // the pool's tokens changed
	slotTaken                      // the slot may be another caller's: the store had not heard of this process for long
	limitsChanged                  // the fleet has other limits
	woken                          // the status changed, perhaps to no effect on this caller
)

// wakers are what wakes a caller before its time. A nil channel never does.
type wakers struct {
	accounts, status <-chan struct{} // closed when they change
}

// sleep is how callers wait that have no slot: for a time, until their context ends, or until
// something wakes them. For slots they stand in line.
func sleep(ctx context.Context, length time.Duration, w wakers) outcome {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.accounts:
		return accountsChanged
	case <-w.status:
		return woken
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return contextEnded
	}
	return completed
}
