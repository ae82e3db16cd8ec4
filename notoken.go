package ration

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ration-go/ration/provider"
)

// ErrNoToken matches, with errors.Is, the error that says that no token of a pool is of use,
// and that no wait within the request's deadline helps. The error itself is a [*NoTokenError].
var ErrNoToken = errors.New("ration: no token is left")

// A NoTokenError says that every token of a pool is quarantined, because the provider has
// rejected it, or has no secret, because its source fails. Nothing was booked or sent. A program can
// alert somebody who replaces the tokens. The failures of the sources are its causes, for errors.Is
// and errors.As.
type NoTokenError struct {
	// Budget is the budget's name.
	Budget string
	// Tokens are those of the pool, in the order in which they were added.
	Tokens []QuarantinedToken

	unserved bool      // no token was ever served
	probing  bool      // a token is probed just now
	next     time.Time // when a token is probed that may be served, on this process's clock; zero: none may
}

// A QuarantinedToken is a token that is not used, because the provider has rejected it or its
// source fails. A [*NoTokenError] lists those of a pool.
type QuarantinedToken struct {
	// ID is the token's ID, and Account the ID of its account.
	ID, Account string
	// Reason is what the provider said: ReasonDeadToken, ReasonUnauthorized or
	// ReasonBilling. Empty: its source fails.
	Reason provider.Reason
	// Err is the failure of its source. Nil: it does not fail.
	Err error
	// Until is when one request probes the token, or the source is asked again, on the store's
	// clock.
	Until time.Time
	// Label is the token's, for people.
	Label string
	// Answer is the status, the URL without its query, and the first 200 characters of the body of
	// the first response that rejected the token in this process since it was last served, without
	// the secret. Empty: another process has it.
	Answer string
	// Evidence says in a line why the token is quarantined. Empty: another process knows.
	Evidence string
}

// Error names every token, why it is not used and when it is tried again.
func (e *NoTokenError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ration: budget %q: no token is left:", e.Budget)
	rejected := false
	for i, t := range e.Tokens {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s", t.ID)
		if t.Label != "" {
			fmt.Fprintf(&b, " %q", t.Label)
		}
		why := string(t.Reason)
		if rejected = rejected || t.Err == nil; t.Err != nil {
			why = t.Err.Error()
		}
		fmt.Fprintf(&b, " (%s, tried again at %s", why, t.Until.UTC().Format(time.RFC3339))
		for _, more := range []string{t.Evidence, t.Answer} {
			if more != "" {
				b.WriteString("; " + more)
			}
		}
		b.WriteByte(')')
	}
	if e.unserved {
		b.WriteString(": no token was ever served: is it attached as the provider wants it (Transport.Attach)?")
	}
	if rejected {
		b.WriteString(": replace what is expired or revoked, with Pool.Remove and Pool.Add")
	}
	return b.String()
}

// Unwrap returns the failures of the tokens' sources.
func (e *NoTokenError) Unwrap() (causes []error) {
	for _, t := range e.Tokens {
		if t.Err != nil {
			causes = append(causes, t.Err)
		}
	}
	return causes
}

// Is reports whether target is [ErrNoToken].
func (e *NoTokenError) Is(target error) bool { return target == ErrNoToken }
