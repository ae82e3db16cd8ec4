package main

import (
	"bufio"
	"encoding/json"
	"io"
	"time"

	"github.com/ration-go/ration"
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
	Provider     string         `json:"provider"` // the name of a preset; "": none
	Follow       follower       `json:"follow"`
	Hosts        []string       `json:"hosts"` // that get a token
	Workers      int            `json:"workers"`
	Keep         bool           `json:"keep"`    // responses are written to a file
	Timeout      time.Duration  `json:"timeout"` // of a call
	Grace        time.Duration  `json:"grace"`
}

// An earlierCall is a call that an earlier run made, as -out tells of it.
type earlierCall struct {
	Token string    `json:"token"` // ID
	At    time.Time `json:"at"`
}

// A report has one of its fields set, and Commands.
type report struct {
	Ready    bool     `json:"ready,omitempty"`
	Result   *result  `json:"result,omitempty"`
	Event    *event   `json:"event,omitempty"`
	Waiting  *waiting `json:"waiting,omitempty"`
	Finished bool     `json:"finished,omitempty"` // the last: all unused bookings are cancelled
	// Commands is how many the group has sent to Redis so far.
	Commands int64 `json:"commands"`
}

// An event is what the budget reported.
type event struct {
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Count int    `json:"count"` // units that others have spent
}

// waiting is how many callers of a group wait, by the reason.
type waiting map[string]int

// A result is what became of a job. It is fetched if Error is empty.
type result struct {
	ID     int    `json:"id"`
	Sends  []send `json:"sends,omitempty"`
	Status int    `json:"status,omitempty"`
	// Record is the line for -out.
	Record json.RawMessage `json:"record,omitempty"`
	// Next is the page that follows; Warning why it cannot be.
	Next    string `json:"next,omitempty"`
	Warning string `json:"warning,omitempty"`
	Error   string `json:"error,omitempty"`
	// Unsent tells that the crawl was stopped first: not a failure.
	Unsent bool `json:"unsent,omitempty"`
	// Fatal tells that no job will do better, for which Error is the reason.
	Fatal bool `json:"fatal,omitempty"`
}

// A send is one call: a job has several if it was refused or redirected. Times
// are in microseconds, instants since the epoch.
type send struct {
	Token   int   `json:"token"` // index
	Sent    int64 `json:"sent"`
	Refused bool  `json:"refused,omitempty"`
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
