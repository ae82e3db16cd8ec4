package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
)

// A report counts what a crawler's transport and budget have reported. The crawler prints it
// as JSON. It is safe for concurrent use.
type report struct {
	mu            sync.Mutex                 // protects all below
	Refused       map[provider.Reason]int    // calls, by reason; retried ones included
	Unserved      int                        // requests whose last attempt was refused
	Events        map[string]int             // by kind
	ExternalUsage int                        // units that other clients have spent
	LearnedLimits map[string][]string        // by account, the limits that the provider announced last
	Quarantined   map[string]provider.Reason // reasons, by token ID
}

func newReport() *report {
	return &report{
		Refused:       make(map[provider.Reason]int),
		Events:        make(map[string]int),
		LearnedLimits: make(map[string][]string),
		Quarantined:   make(map[string]provider.Reason),
	}
}

// onEvent is the budget's OnEvent.
func (h *report) onEvent(n ration.Event) {
	if n.Kind != ration.ExternalUsage { // there are too many to print
		fmt.Fprintf(os.Stderr, "process %d: %v\n", os.Getpid(), n)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Events[n.Kind.String()]++
	switch n.Kind {
	case ration.ExternalUsage:
		h.ExternalUsage += n.Count
	case ration.LimitLearned:
		var limits []string
		for _, l := range n.Theirs {
			limits = append(limits, l.String())
		}
		h.LearnedLimits[n.Account] = limits
	case ration.TokenQuarantined:
		h.Quarantined[n.Token] = n.Reason
	}
}

// onRefusal is the transport's OnRefusal.
func (h *report) onRefusal(resp *http.Response, g ration.Grant) {
	f, _ := ration.FeedbackOf(resp)
	fmt.Fprintf(os.Stderr, "process %d: refused (%s): %v, slot %v, woke %v after it, and the answer came %v after it\n",
		os.Getpid(), f.Reason, g.Token, g.Slot.Format("05.000"), g.Late, time.Since(g.Slot))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Refused[f.Reason]++
}

// unserved counts a request whose last attempt was refused.
func (h *report) unserved() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Unserved++
}
