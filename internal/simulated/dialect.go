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

// A Dialect is how a provider speaks: where it looks for the token, what its answers say of the quota, and how it
// refuses. It also has the quota that such a provider usually gives, and its way of counting. DialectNamed returns one;
// nil is Instagram's.
type Dialect interface {
	// Name is what DialectNamed finds it by.
	Name() string

	// usual is how such a provider counts.
	usual() usual
	// token is the access token of a call, empty if it has none.
	token(r *http.Request) string
	// tell sets the headers of an answer to a call that a token came with, refused or not.
	tell(h http.Header, s standing)
	// fail is the answer to a call that gets no page, for which s.why has the reason. It may set headers.
	fail(h http.Header, s standing) (status int, body any)
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

// Dialects are the names of all dialects, sorted.
func Dialects() []string {
	names := make([]string, len(dialects))
	for i, d := range dialects {
		names[i] = d.Name()
	}
	slices.Sort(names)
	return names
}

// DialectNamed returns the dialect of that name. The error names all there are.
func DialectNamed(name string) (Dialect, error) {
	for _, d := range dialects {
		if d.Name() == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("no dialect is named %q: there are %s", name, strings.Join(Dialects(), ", "))
}

// standing is how a token stands right after a call, and what became of the call.
type standing struct {
	user    int // a number for whose token it is, from 1
	arrived time.Time
	why     Kind // the call gets no page; empty: it does
	counted bool // the call counts against the quota

	limit     int
	window    time.Duration
	most      int           // that the quota ever has room for: the limit, or the size of a bucket
	remaining int           // that it has room for
	full      time.Duration // from the arrival until all of the quota is there again
	next      time.Duration // from the arrival until a call is accepted; zero: it is not to be said
}

// left is what the answer says is left: nothing where it refuses because of the quota.
func (s standing) left() int {
	if s.why == KindQuota {
		return 0
	}
	return s.remaining
}

// used is what is not left.
func (s standing) used() int { return s.most - s.left() }

// reset is how long it is, from the arrival, until there is more where nothing is left, and until there is all
// otherwise. With windows that end as a whole it is the end of one.
func (s standing) reset() time.Duration {
	if s.why == KindQuota && s.next > 0 {
		return s.next
	}
	return s.full
}

// epoch is the Unix time of a moment after the arrival, rounded up: a caller who waits for it does not come early.
func (s standing) epoch(after time.Duration) string {
	at := s.arrived.Add(after)
	seconds := at.Unix()
	if at.Nanosecond() > 0 {
		seconds++
	}
	return strconv.FormatInt(seconds, 10)
}

// wholeSeconds is d in seconds, rounded up.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatFloat(math.Ceil(d.Seconds()), 'f', -1, 64)
}

// inMilliseconds is d rounded up to a millisecond.
func inMilliseconds(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// authorization is the credential in the Authorization header, empty if its scheme is another.
func authorization(r *http.Request, schemes ...string) string {
	scheme, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if slices.ContainsFunc(schemes, func(s string) bool { return strings.EqualFold(s, scheme) }) {
		return credential
	}
	return ""
}
