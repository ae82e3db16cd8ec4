package store

// A Watcher is a [Store] that says by itself when the Status of a budget changes. Callers
// that wait for their slots watch it, so that a pause reaches them while they sleep. Callers
// of a store without this method learn of a change from the Version in the answer to their
// next request. No store needs it.
type Watcher interface {
	// Watch has changed called whenever the budget's Status has a new version, with that
	// version, until stop is called; a call that has begun then may still end after it. The
	// version 0 says that the status may have changed: a store whose messages can be lost
	// calls changed so when the watch is in force, and when it is again after a loss. What
	// changes between that call and stop is told, as far as the store's messages arrive.
	//
	// Watch and stop return at once. So does changed, which calls no method of the store:
	// the caller that changes the status may be kept waiting for it.
	Watch(budget string, changed func(version int64)) (stop func())
}
