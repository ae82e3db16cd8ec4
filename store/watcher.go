package store

// A Watcher says by itself when the Status of a budget changes, and when slots become
// free. Callers that wait for their slots watch it, so that a pause reaches them while they sleep, and so
// that they take slots that others gave back. Callers of a store that cannot learn of a change
// from the Version in the answer to their next request, and keep their slots.
type Watcher interface {
	// Watch has told called with all news of the budget until stop is called; a call that has begun then
	// may still end after it. What happens between the first News that says that some may be missing and
	// stop is told, as far as the store's messages arrive.
	//
	// Watch and stop return at once. So does told, which calls no method of the store:
	// the caller that changes the status may be kept waiting for it. A nil stop says that the store tells nothing.
	Watch(budget string, told func(News)) (stop func())
}

// News is what a watch tells. The zero News says that some may be missing: the status may have a new
// version, and slots may have become free. A store whose messages can be lost tells it when the watch is
// in force, and when it is again after a loss.
type News struct {
	// Version is the Status's new version. Zero: it has none.
	Version int64
	// Account is the ID of an account that may have an earlier slot for callers that wait, because
	// bookings were cancelled or corrected. Empty: none has.
	Account string
	// Permits names a limit of calls in flight of which workers want more than there are, or some are free: who waits for one of them
	// asks again, and who has some that it does not use tells so. Empty: there is none.
	Permits string
	// By is who has given the slots back, as BookRequest.Instead has it. Zero: it was not said.
	By BookingID
	// Now is set if units of calls that have left are free: there is room from now on, but not beside the slots that were booked
	// ahead in the meantime, so that the first callers are to ask for earlier ones in place of theirs, and not the last.
	Now bool
	// Silent is set if the store has said nothing for so long that it may answer no more: who hears it asks.
	Silent bool
}
