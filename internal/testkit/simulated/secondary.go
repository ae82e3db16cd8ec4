package simulated

import "time"

// entry is a call's place in the log of the secondary limit, and the room left there.
type entry struct{ place, room int }

// enterSecondary enters a call in that log, if there is a secondary limit.
func (t *tally) enterSecondary(at time.Duration) entry {
	if t.secondary == nil {
		return entry{}
	}
	place, room := t.secondary.add(at)
	return entry{place, room}
}

// leaveSecondary removes the call from that log.
func (t *tally) leaveSecondary(e entry) {
	if t.secondary != nil {
		t.secondary.remove(e.place)
	}
}
