package ration

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ration-go/ration/internal/digest"
	"github.com/ration-go/ration/internal/sweep"
	"github.com/ration-go/ration/limit"
	"github.com/ration-go/ration/store"
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
	return joinValues(all), missing
}

// joinValues returns values as one string, from which splitValues returns them. A value may have any byte, so each has its length
// before it: "3:a:b0:" is "a:b" and "".
func joinValues(all []string) string {
	var b strings.Builder
	for _, value := range all {
		b.WriteString(strconv.Itoa(len(value)))
		b.WriteByte(':')
		b.WriteString(value)
	}
	return b.String()
}

// splitValues returns what joinValues has joined.
func splitValues(joined string) (all []string) {
	for joined != "" {
		length, rest, _ := strings.Cut(joined, ":")
		n, err := strconv.Atoi(length)
		if err != nil || n < 0 || n > len(rest) {
			return all // joinValues makes no such string
		}
		all, joined = append(all, rest[:n]), rest[n:]
	}
	return all
}

// meterName returns the name, and the label, of what counts a limit's unit for a value. Whatever the value is, stores take both: the
// name has a digest of it, and the label what people can read of it.
func meterName(l *limit.Limit, value string) (name, label string) {
	if l.Per == "" {
		return l.Unit, ""
	}
	name, label = l.Per+"-"+digest.Of("", "value", l.Per+" "+value)[:10], l.Per+"="
	unit := ""
	if l.Unit != "" {
		name, unit = name+"-"+l.Unit, " "+l.Unit
	}
	return name, label + shortened(printable(value), store.MaxLabel-len(label)-len(unit)) + unit
}

// printable returns a text with its unprintable characters escaped as in a string of Go, on one line.
func printable(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return text
	}
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// shortened returns a text of at most so many bytes, 10 or more: of a longer one the beginning and the end, which tell routes apart.
func shortened(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const gap = "..."
	end := (most - len(gap)) / 3
	return strings.ToValidUTF8(text[:most-len(gap)-end], "") + gap + strings.ToValidUTF8(text[len(text)-end:], "")
}
