package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/ration-go/ration"
)

// A heard is what a crawler's transport and budget have told, which it prints as JSON.
// It may be used concurrently.
type heard struct {
	mu       sync.Mutex               // protects all below
	Refused  map[ration.Reason]int    // calls, by why: also those that were sent again
	Unserved int                      // requests that were refused to the last
	Notices  map[string]int           // by kind
	Owed     int                      // units that others were found to have spent
	Learnt   map[string][]string      // the limits that the provider announced last, by account
	SetAside map[string]ration.Reason // by the token's ID
}

func newHeard() *heard {
	return &heard{
		Refused:  make(map[ration.Reason]int),
		Notices:  make(map[string]int),
		Learnt:   make(map[string][]string),
		SetAside: make(map[string]ration.Reason),
	}
}

// noticed is the budget's hook.
func (h *heard) noticed(n ration.Event) {
	if n.Kind != ration.ExternalUsage { // of which there are many
		fmt.Fprintf(os.Stderr, "process %d: %v\n", os.Getpid(), n)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Notices[n.Kind.String()]++
	switch n.Kind {
	case ration.ExternalUsage:
		h.Owed += n.Count
	case ration.LimitLearned:
		var limits []string
		for _, l := range n.Theirs {
			limits = append(limits, l.String())
		}
		h.Learnt[n.Account] = limits
	case ration.TokenQuarantined:
		h.SetAside[n.Token] = n.Reason
	}
}

// refused is the transport's hook.
func (h *heard) refused(resp *http.Response, g ration.Grant) {
	f, _ := ration.FeedbackOf(resp)
	fmt.Fprintf(os.Stderr, "process %d: refused (%s): %v, slot %v, woke %v after it, and the answer came %v after it\n",
		os.Getpid(), f.Reason, g.Token, g.Slot.Format("05.000"), g.Late, time.Since(g.Slot))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Refused[f.Reason]++
}

// unserved counts a request that was refused to the last.
func (h *heard) unserved() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Unserved++
}
