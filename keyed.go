package ration

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ration-go/ration/internal/digest"
	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/limit"
)

// A limit with Per is one limit for each value of a key: of each route, say. What counts a value is a meter like that of any other
// unit, whose name follows from the value. So a list of accounts has another list for each of the values that requests
// have, which is made when it is first asked for.

// WithKey returns a context whose requests have a value of a key: the route of a request, say, for limits with the [Limit].Per
// "route". An empty value is none: such a request counts under none of these limits. It comes before what the Provider's Keys
// say. Wait, Try, Take, Usage and Remaining go by it too. A budget without such limits does not look at it.
//
// Values are told apart exactly, and people see them as they are: of a path, leave secrets out, and what does not matter.
func WithKey(ctx context.Context, per, value string) context.Context {
	return withOption(ctx, func(o *requestOptions) {
		o.keys = maps.Clone(o.keys)
		if o.keys == nil {
			o.keys = make(map[string]string, 1)
		}
		o.keys[per] = value
	})
}

// withKeysOf returns a context with what a Provider says of a request's keys, where the context does not say it.
func withKeysOf(ctx context.Context, said map[string]string) context.Context {
	return withOption(ctx, func(o *requestOptions) {
		if o.keys == nil {
			o.keys = said
			return
		}
		all := maps.Clone(said)
		maps.Copy(all, o.keys)
		o.keys = all
	})
}

// mostKeyed is how many lists for values are kept at once; any other value is an error then.
const mostKeyed = 1000

// keyedLists are those of one list.
type keyedLists struct {
	per   []string      // the keys of which requests must have a value, in the order of the limits
	apart time.Duration // how long after its last use one is out of use: what was spent does not count any more
	mu    sync.Mutex    // protects all
	all   sweep.Map[string, *keyedList]
}

type keyedList struct {
	*accountList
	used time.Time // on this process's clock
}

// newKeyedLists returns those of a list whose accounts have such limits; nil: they have none.
func newKeyedLists(metered []limit.Limit) *keyedLists {
	var k keyedLists
	for _, l := range metered {
		if l.Per != "" {
			if k.apart = max(k.apart, l.Window); !slices.Contains(k.per, l.Per) {
				k.per = append(k.per, l.Per)
			}
		}
	}
	if k.per == nil {
		return nil
	}
	return &k
}

// valuesOf returns the values that a request has, as one string, and a key of which it does not say any; empty: there is none.
func (k *keyedLists) valuesOf(o *requestOptions) (values, missing string) {
	all := make([]string, len(k.per))
	for i, per := range k.per {
		said := false
		if o != nil {
			all[i], said = o.keys[per]
		}
		if !said {
			missing = cmp.Or(missing, per)
		}
	}
	return strings.Join(all, "\x00"), missing
}

// meterName returns the name, and the label, of what counts a limit's unit for a value.
func meterName(l *limit.Limit, value string) (name, label string) {
	if l.Per == "" {
		return l.Unit, ""
	}
	name, label = l.Per+"-"+digest.Of("", "value", l.Per+" "+value)[:10], l.Per+"="+value
	if l.Unit != "" {
		name, label = name+"-"+l.Unit, label+" "+l.Unit
	}
	return name, label
}
