package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/store"
)

// The coordinator and its worker groups speak in lines of JSON: orders go to a group,
// reports come back. A group in a process of its own gets them through its
// standard input and output, one in the coordinator's process through pipes in
// memory. The orders end, with the process that gives them, however that ends:
// a group whose orders end without stop stops by itself.

// An order has one of its fields set. The first is Setup.
type order struct {
	Setup *setup `json:"setup,omitempty"`
	Jobs  []job  `json:"jobs,omitempty"`
	Stop  bool   `json:"stop,omitempty"` // no more will come; let go of what waits for a slot
}

// A job is a URL to be fetched.
type job struct {
	ID  int    `json:"id"`
	URL string `json:"url"`
}

// A setup is all that a worker group needs to know.
type setup struct {
	Tokens       []string       `json:"tokens"` // secrets
	Limits       []ration.Limit `json:"limits"`
	Margin       time.Duration  `json:"margin"`
	Budget       string         `json:"budget"`
	Redis        string         `json:"redis"` // "": the log is in memory
	EarlierCalls []earlierCall  `json:"spent"` // what the log in memory begins with
	Auth         auth           `json:"auth"`
	Preset       string         `json:"preset"` // "": none
	Header       http.Header    `json:"header"` // for the hosts below
	Follow       follower       `json:"follow"`
	Hosts        []string       `json:"hosts"` // that get a token
	Workers      int            `json:"workers"`
	Keep         bool           `json:"keep"`  // responses are written to a file
	Usage        bool           `json:"usage"` // report what is left of the quota
	Probe        bool           `json:"probe"` // measure how late the process wakes
	Grace        time.Duration  `json:"grace"`
}

// An earlierCall is a call that an earlier run made, as -out tells of it.
type earlierCall struct {
	Token string    `json:"token"` // ID
	At    time.Time `json:"at"`
}

// A report has one of its fields set, and Commands. Some have Events too.
type report struct {
	Ready    bool    `json:"ready,omitempty"`
	Result   *result `json:"result,omitempty"`
	State    *state  `json:"state,omitempty"`
	Finished bool    `json:"finished,omitempty"` // the last: all unused bookings are cancelled
	// Events are those of the budget since the last report.
	Events []budgetEvent `json:"events,omitempty"`
	// Commands is how many the group has sent to the store so far.
	Commands int64 `json:"commands"`
	// WokeLate is how late, in microseconds, the process woke at worst.
	WokeLate int64 `json:"woke_late,omitempty"`
}

// A result is what became of a job. It is fetched if Error is empty.
type result struct {
	ID     int    `json:"id"`
	Worker int    `json:"worker"`
	Sends  []send `json:"sends,omitempty"`
	Status int    `json:"status,omitempty"`
	// Rejected tells that the answer may be about the tokens, and Answer is what it says: it is kept
	// once any page was served.
	Rejected bool   `json:"rejected,omitempty"`
	Answer   string `json:"answer,omitempty"`
	// Record is the line for -out.
	Record json.RawMessage `json:"record,omitempty"`
	// Next is the page that follows; Warning why it cannot be.
	Next    string `json:"next,omitempty"`
	Warning string `json:"warning,omitempty"`
	Error   string `json:"error,omitempty"`
	// Unsent tells that the crawl was stopped first: not a failure.
	Unsent bool `json:"unsent,omitempty"`
	// Ends tells that no job will do better, for which Error is the reason.
	Fatal bool `json:"fatal,omitempty"`
}

// A send is one call: a job has several if it was refused or redirected. Times
// are in microseconds, instants since the epoch.
type send struct {
	Token   int   `json:"token"` // index
	Sent    int64 `json:"sent"`
	Late    int64 `json:"late"`
	Waited  int64 `json:"waited,omitempty"` // for the slot
	Took    int64 `json:"took,omitempty"`   // from Sent until the worker went on
	Refused bool  `json:"refused,omitempty"`
}

// A state is sent now and then, for the display.
type state struct {
	Waiting int           `json:"waiting"` // workers that wait for their slot
	Waits   waits         `json:"waits,omitempty"`
	Usage   []store.Usage `json:"usage,omitempty"`
}

// writeAll writes what comes through the channel until that is closed, and
// flushes whenever it has caught up: in a burst many messages leave with one
// write, and a lone one does not wait. If a write fails it goes on to empty the
// channel, so that nobody blocks, and returns the first error.
func writeAll[M any](to io.Writer, messages <-chan M) error {
	buffered := bufio.NewWriterSize(to, 64<<10)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	var failed error
	for m := range messages {
		if failed != nil {
			continue
		}
		if failed = encoder.Encode(m); failed == nil && len(messages) == 0 {
			failed = buffered.Flush()
		}
	}
	return failed
}
