package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/store"
)

// A reply is what a script answered: strings, whatever the protocol's version.
// Reading a part that is missing or malformed sets err.
type reply struct {
	parts []string
	err   error
}

func newReply(v any) *reply {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return &reply{err: fmt.Errorf("a %T came where a list was expected", v)}
	}
	r := &reply{parts: make([]string, len(list))}
	for i, part := range list {
		s, ok := part.(string)
		if !ok && r.err == nil {
			r.err = fmt.Errorf("part %d is a %T where a string was expected", i, part)
		}
		r.parts[i] = s
	}
	return r
}

// is reports whether the reply is of the given kind and length.
func (r *reply) is(kind string, length int) bool {
	return r.err == nil && len(r.parts) == length && r.parts[0] == kind
}

// number reads a whole number of at least 0.
func (r *reply) number(i int) int64 {
	if i >= len(r.parts) {
		r.fail(fmt.Errorf("part %d is missing", i))
		return 0
	}
	n, err := strconv.ParseInt(r.parts[i], 10, 64)
	if err != nil || n < 0 || n > 1<<53 {
		r.fail(fmt.Errorf("part %d is %q where a number was expected", i, store.Clip(r.parts[i])))
		return 0
	}
	return n
}

// instant reads microseconds since the epoch; 0 is the zero time.
func (r *reply) instant(i int) time.Time {
	n := r.number(i)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n)
}

func (r *reply) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// bad returns the error for a reply that no script of ours gives.
func (r *reply) bad(op string) error {
	err := r.err
	if err == nil {
		err = fmt.Errorf("%d parts, the first %q", len(r.parts), store.Clip(r.parts[0]))
	}
	return &store.StoreError{Op: op, Permanent: true, Err: fmt.Errorf("the reply is not one of ration's scripts: %w", err)}
}

// micros is an instant as the scripts read it: "" for the server's clock.
func micros(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}

// passing begins the error replies of a server that will serve again.
var passing = []string{
	"LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "READONLY", "OOM", "MISCONF",
	"ERR max number of clients reached",
	// While the slot of a budget moves to another node of a Cluster.
	"ERR Script attempted to access a non local key",
}

// newStoreError tells errors that pass from those that asking again cannot
// help. Replies of the server are redis.Error; all else is the network's.
func newStoreError(op string, err error) error {
	var replied interface{ RedisError() }
	permanent := false
	if errors.As(err, &replied) {
		permanent = true
		for _, prefix := range passing {
			if strings.HasPrefix(err.Error(), prefix) {
				permanent = false
			}
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		permanent = false
	}
	return &store.StoreError{Op: op, Permanent: permanent, Err: err}
}
