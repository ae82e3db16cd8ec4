package limits

import (
	"cmp"
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

// mostKeyed is how many lists for values are kept at once; any other value is an error then.
const mostKeyed = 1000

// A limit with Per is one limit for each value of a key: of each route, say. What counts a value is a meter like that of any other
// unit, whose name follows from the value. So a list of accounts has another list for each of the values that requests
// have, which is made when it is first asked for.

// Keyed are the lists of one list for values.
type Keyed struct {
	keeper *Keeper
	per    []string      // the keys of which requests must have a value, in the order of the limits
	apart  time.Duration // how long after its last use one is out of use: what was spent does not count any more
	mu     sync.Mutex    // protects all
	all    sweep.Map[string, *keyedList]
}

type keyedList struct {
	*List
	used time.Time // on this process's clock
}

// keyed returns those of a list whose accounts have such limits; nil: they have none.
func (k *Keeper) keyed(metered []limit.Limit) *Keyed {
	lists := Keyed{keeper: k}
	for _, l := range metered {
		if l.Per != "" {
			if lists.apart = max(lists.apart, l.Window); l.InFlight > 0 {
				lists.apart = max(lists.apart, time.Minute)
			}
			if !slices.Contains(lists.per, l.Per) {
				lists.per = append(lists.per, l.Per)
			}
		}
	}
	if lists.per == nil {
		return nil
	}
	return &lists
}

// Values returns the values that a request has, as one string, and a key of which it does not say any; empty: there is none.
func (k *Keyed) Values(has map[string]string) (values, missing string) {
	all := make([]string, len(k.per))
	for i, per := range k.per {
		said := false
		if all[i], said = has[per]; !said {
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
