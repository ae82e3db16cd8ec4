package store

import "time"

// A KnownBudget is a budget of which a store knows that it was booked.
type KnownBudget struct {
	// Name is the budget's name.
	Name string
	// Seen is when a worker last said that it books in it, on the store's clock: within ten
	// minutes of its last booking.
	Seen time.Time
}

// A Description is all that a store tells of a budget to a reader that has no configuration.
type Description struct {
	// Budget is the budget's name.
	Budget string
	// Now, Version, Lost and Revision are those of the budget's [Status]. Version is zero if
	// nothing is known of the budget.
	Now      time.Time
	Version  int64
	Lost     time.Time
	Revision int
	// Card is that of the Status too.
	Card Card
	// Accounts are those that count anything, in the order of their IDs.
	Accounts []DescribedAccount
	// Pauses are those in force, and Quarantined those of tokens that were not served since: the Until of some is over. The first
	// that ends comes first.
	Pauses      []Pause
	Quarantined []Quarantine
	// Spent are the pauses of windows that are spent, as the provider says: nothing was refused.
	Spent []Pause
	// Permits are those of each limit of calls in flight that is in use, in the order of the names.
	Permits []Permits
	// Workers are those that named themselves: see [StatusRequest]. The one that was heard
	// of last comes last.
	Workers []Worker
}

// A DescribedAccount is an account as a [Description] has it.
type DescribedAccount struct {
	// Usage is what is used of each of the effective limits. It has none if the account was
	// never booked under any.
	Usage
	// SpentUntil is when a window has room again that is spent as the provider says, in place of PausedUntil. Zero: none is.
	SpentUntil time.Time
	// Label is the account's, if a worker gave it one.
	Label string
	// Card has the effective limits, as the store keeps them. Zero: the account was never booked under any.
	Card Card
}

// A Worker is a process that shares a budget.
type Worker struct {
	// ID is what it named itself.
	ID string
	// Seen is when it was last heard of, on the store's clock.
	Seen time.Time
	// Load is what its callers did then.
	Load Load
}

// A Load is what the callers of a process do at an instant, and how fast. The zero value is nothing.
type Load struct {
	// Waiting is how many wait, by what for: "quota", "pause" and so on, as rationtrace.Reason prints
	// it. Nil: nobody waits.
	Waiting map[string]int `json:"waiting,omitempty"`
	// InFlight is how many attempts of requests were sent and have no response yet.
	InFlight int `json:"in_flight,omitempty"`
	// SlotsPerSecond is how many callers got their slot a second, in the twenty seconds before, or since the process
	// began; the middle of them counts most, so that bursts do not show.
	SlotsPerSecond float64 `json:"slots_per_second,omitempty"`
	// Answers is how many requests were answered in the minute before, by class: "2xx", "401", "403", "429", "other 4xx", "5xx", "no answer".
	// Nil: none was.
	Answers map[string]int `json:"answers,omitempty"`
	// AnswersInAll is Answers since the process began.
	AnswersInAll map[string]int64 `json:"answers_in_all,omitempty"`
	// Failed are the most frequent of Answers that were no success, at most 30, by account and endpoint. Nil: all were.
	Failed []FailedAnswers `json:"failed,omitempty"`
	// Waited is how long those waited who got their slot in the minute before, and Took how long the responses took that came in it.
	Waited Histogram `json:"waited,omitempty"`
	Took   Histogram `json:"took,omitempty"`
	// LongestWait is how long the caller waits that has waited longest. Zero: nobody waits.
	LongestWait time.Duration `json:"longest_wait,omitempty"`
	// RefusedLastMinute is how many responses refused a request in the minute before.
	RefusedLastMinute int `json:"refused_last_minute,omitempty"`
	// LogLost is when the store had lost a log for the last time of which the process has recorded its bookings again, on
	// the store's clock. Zero: it did not.
	LogLost time.Time `json:"log_lost,omitzero"`
	// Process is what the process was given.
	Process Process `json:"process,omitzero"`
}

// FailedAnswers are answers of one class to requests of an account to an endpoint.
type FailedAnswers struct {
	// Account is the account's ID.
	Account string `json:"account"`
	// Endpoint is a method and an address, with "*" for the IDs of objects: "GET https://api.test/users/*".
	Endpoint string `json:"endpoint"`
	// Class is one of those of [Load.Answers].
	Class string `json:"class"`
	// Count is how many there were.
	Count int `json:"count"`
}

// A Process is what a process that shares a budget was given, and whether that is of use. The zero value says nothing.
type Process struct {
	// Version is that of ration, and Revision the budget's. Empty: the program's build does not say.
	Version  string `json:"version,omitempty"`
	Revision int    `json:"revision,omitempty"`
	// Limits are those that the budget was given, as texts: see limit.Limit.String. Those in force are in the Description.
	Limits []string `json:"limits,omitempty"`
	// ClockAhead is how far its clock is ahead of the store's; negative: behind.
	ClockAhead time.Duration `json:"clock_ahead,omitempty"`
	// Error is why a caller got nothing in the minute before, such as a [LimitsError], but for what the quota, the tokens and the caller's
	// own context say, and ErrorAt when the last one was told so, on the store's clock. Empty: none was.
	Error   string    `json:"error,omitempty"`
	ErrorAt time.Time `json:"error_at,omitzero"`
}

// IsIdle reports whether the callers of the process did nothing, and have not for a minute.
func (l *Load) IsIdle() bool {
	return len(l.Waiting) == 0 && l.InFlight == 0 && l.SlotsPerSecond == 0 && l.RefusedLastMinute == 0 && len(l.Answers) == 0 && l.Process.Error == ""
}
