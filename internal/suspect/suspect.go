// Package suspect weighs what responses say against a token: a table of transitions, without a clock, a lock or a store.
//
// A response that rejects a token may be about the token, the page or the provider's own trouble. So no response is a verdict by
// itself. A request that is rejected is tried with other tokens, and its outcome is the evidence:
//
//	seen                                          the token is
//	─────────────────────────────────────────     ─────────────────────────────────────────────────────
//	no token was served                           as it was: the fault is the page's
//	 … and it is called invalid for 20 in a row   condemned, unless it was served lately
//	another token was served                      quarantined: at once if it is called invalid, or was
//	                                              quarantined before; otherwise with the second request
//	it was served                                 above suspicion
//
// A quarantine is twice as long as the one before. When it ends one request of the whole fleet probes the token: if that is served the
// fleet uses it again, and otherwise the next quarantine follows.
package suspect

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ration-go/ration/provider"
)

const (
	// mostContradictions is how many requests contradict a token before it is quarantined whose
	// rejections do not say that it is invalid.
	mostContradictions = 2
	// MostInvalid is the row of requests that condemns a token without a contradiction, and
	// MostUnserved that of requests without any success of which people are told.
	MostInvalid, MostUnserved = 20, 20
	// firstQuarantine is the length of a token's first quarantine. Each that follows without a
	// success in between is twice as long.
	firstQuarantine = time.Second
)

// A State is what a process has against a token since it was last served. The zero State is above suspicion.
type State struct {
	// Quarantined is set from the token's first quarantine until it is served, and Condemned if no request need wait for its probe.
	Quarantined, Condemned bool
	// Reason is that of the last quarantine.
	Reason provider.Reason
	// Until is when that ends, or ended, as the store says. Zero: it did not answer.
	Until time.Time
	// Probing is set while one request of the fleet probes the token.
	Probing bool
	// ProbedUntil is when this process's probe is given up, on its clock. Zero: there is none.
	ProbedUntil time.Time
	// Resumes is the fleet.State's when the token became a suspect.
	Resumes int64
	// Quarantines are those in a row, by any process.
	Quarantines int
	// Answer is the first response that rejected the token. Empty: another process has it.
	Answer string

	contradictions int // of requests that another token was served
	invalid        int // requests in a row for which the provider said that it is invalid
	unserved       int // requests in a row for which it was rejected
}

// A Rejection is what one request has shown about a token that was rejected.
type Rejection struct {
	// Contradicted is set if another token was served the request; otherwise none was.
	Contradicted bool
	// Invalid is set if the provider said that the token is.
	Invalid bool
	// Answer is the response, for people.
	Answer string
	// Ever is set if the token was ever served, and Lately if it was a short time ago.
	Ever, Lately bool
}

// A Verdict is what follows from a rejection.
type Verdict struct {
	// Quarantine is why the token is to be quarantined. Empty: it is not.
	Quarantine provider.Reason
	// Condemned is set if no request need wait for its probe.
	Condemned bool
	// NeverServed is set once if people are to be told that the token never worked, after so many requests.
	NeverServed int
}

// Next returns what there is against the token after a rejection, and what follows.
func (s State) Next(r Rejection) (State, Verdict) {
	s.Answer = cmp.Or(s.Answer, r.Answer)
	if r.Contradicted {
		s.contradictions++
		switch {
		case r.Invalid:
			return s, Verdict{Quarantine: provider.ReasonDeadToken}
		case s.contradictions >= mostContradictions || s.Quarantined:
			return s, Verdict{Quarantine: provider.ReasonUnauthorized}
		}
		return s, Verdict{}
	}

	if s.unserved++; r.Invalid {
		s.invalid++
	} else {
		s.invalid = 0
	}
	var v Verdict
	switch {
	case s.invalid >= MostInvalid && !r.Lately || s.Condemned && r.Invalid:
		v.Quarantine, v.Condemned = provider.ReasonDeadToken, true
	case s.Quarantined: // a probe must show that it is served
		v.Quarantine = s.Reason
	}
	if s.unserved == MostUnserved && !r.Ever && !r.Invalid {
		v.NeverServed = s.unserved
	}
	return s, v
}

// Quarantine returns the state of a token that is quarantined by a verdict, and for how long: the longest at most.
func (s State) Quarantine(v Verdict, longest time.Duration) (State, time.Duration) {
	length := min(longest, firstQuarantine<<min(s.Quarantines, 30))
	s.Quarantines++
	s.Quarantined, s.Condemned, s.Reason, s.ProbedUntil = true, v.Condemned, v.Quarantine, time.Time{}
	return s, length
}

// Evidence says in a line why the token is quarantined. Empty: another process knows.
func (s *State) Evidence() string {
	switch {
	case s.Condemned:
		return fmt.Sprintf("the provider called it invalid for %d requests in a row and did not serve it", s.invalid)
	case s.contradictions > 0:
		requests := "a request"
		if s.contradictions > 1 {
			requests = fmt.Sprint(s.contradictions, " requests")
		}
		return "another token was served " + requests + " for which it was rejected"
	}
	return ""
}

// Cause says to the fleet why the token is quarantined.
func (s *State) Cause() string {
	cause := s.Answer
	if evidence := s.Evidence(); evidence != "" && cause != "" {
		cause = evidence + "; " + cause
	}
	return cmp.Or(cause, "the account is not paid for")
}
