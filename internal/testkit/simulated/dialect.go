package simulated

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Dialect is the protocol of a provider: where a call has its token, which headers describe the quota, and what a
// refusal looks like. It also has the usual quota of such a provider and how it counts. DialectNamed returns one; nil
// is Instagram's.
type Dialect interface {
	// Name is the name for DialectNamed.
	Name() string

	// usual returns the usual quota and how it is counted.
	usual() usual
	// token returns the access token of a call, empty if it has none.
	token(r *http.Request) string
	// setHeaders sets the headers of the answer to a call with a known token, refused or not.
	setHeaders(h http.Header, s quotaState)
	// fail returns the answer to a call that is not served; s.why is why. It may set headers.
	fail(h http.Header, s quotaState) (status int, body any)
}

// usual is the quota of a dialect. A bucket, with CountGCRA, is of that limit and fills in that window.
type usual struct {
	count  Counting
	limit  int
	window time.Duration
}

var dialects = []Dialect{
	discordDialect{}, githubDialect{}, ietfDialect{}, instagramDialect{}, metaDialect{}, openaiDialect{}, shopifyDialect{},
	xDialect{},
}

// Dialects returns the names of all dialects, sorted.
func Dialects() []string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.Name()
	}
	slices.Sort(names)
	return names
}

// DialectNamed returns the dialect of that name. The error lists all names.
func DialectNamed(name string) (Dialect, error) {
	for _, d := range dialects {
		if d.Name() == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("no dialect is named %q: there are %s", name, strings.Join(Dialects(), ", "))
}

// quotaState is the state of a token's quota right after a call, and the result of the call.
type quotaState struct {
	user    int // the number of the token's owner, from 1
	arrived time.Time
	why     Kind // the call is not served; empty: it is
	counted bool // the call counts against the quota

	limit     int
	window    time.Duration
	most      int           // units of a full quota: the limit, or the size of a bucket
	remaining int           // units left
	full      time.Duration // from the arrival until all of the quota is there again
	next      time.Duration // from the arrival until a call is accepted; zero: the answer does not say
}

// left returns what the answer says is left: 0 if it refuses because of the quota.
func (s quotaState) left() int {
	if s.why == KindQuota {
		return 0
	}
	return s.remaining
}

// used returns what is not left.
func (s quotaState) used() int { return s.most - s.left() }

// reset returns the time from the arrival until a unit is left again, if none is, or else until the quota is full. If
// windows end as a whole, both are the end of the window.
func (s quotaState) reset() time.Duration {
	if s.why == KindQuota && s.next > 0 {
		return s.next
	}
	return s.full
}

// epoch returns the Unix time of a moment after the arrival. It is rounded up, so that a caller that waits for it is
// not early.
func (s quotaState) epoch(after time.Duration) string {
	at := s.arrived.Add(after)
	seconds := at.Unix()
	if at.Nanosecond() > 0 {
		seconds++
	}
	return strconv.FormatInt(seconds, 10)
}

// wholeSeconds returns d in seconds, rounded up.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatFloat(math.Ceil(d.Seconds()), 'f', -1, 64)
}

// inMilliseconds returns d rounded up to a millisecond.
func inMilliseconds(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// authorization returns the credential in the Authorization header, empty if the scheme is none of these.
func authorization(r *http.Request, schemes ...string) string {
	scheme, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if slices.ContainsFunc(schemes, func(s string) bool { return strings.EqualFold(s, scheme) }) {
		return credential
	}
	return ""
}
