package store

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ration-go/ration/limit"
)

// A LimitSet is limits that an account keeps at once, in the form in which a store counts
// them. Accounts with the same limits have one in common.
type LimitSet struct {
	// Name is the limits as EncodeLimits writes them: equal sets have one name.
	Name string
	// Edition is that of the accounts; zero: the request's Revision alone.
	Edition Edition
	// Limits are as they were given, and Compiled the same in that order.
	Limits   []limit.Limit
	Compiled []CompiledLimit
	// Window is the longest window, with its margin, in microseconds: after it an entry
	// of the log counts for nothing.
	Window int64
	// Shortest is the shortest window, without its margin, in microseconds.
	Shortest int64
	// LargestMax is the largest Max of a limit that is counted in a log; 0: none is.
	LargestMax int64

	maxCost int64 // of a request without scopes
}

// A CompiledLimit is a limit in units and microseconds.
type CompiledLimit struct {
	// Name tells the counts of an account apart: limits with one name, of which there
	// is at most one in a set, go on with one count. They may differ in Max, Margin and
	// Burst.
	Name string
	// Algorithm, Scope, Zone and FirstUse are the limit's.
	Algorithm limit.Algorithm
	Scope     string
	Zone      string
	FirstUse  bool
	// Max is in units, and so is Burst, which is GCRA's.
	Max, Burst int64
	// Window is in microseconds, and of a log with Margin added. Other algorithms add
	// Margin, which is in microseconds too, where it belongs.
	Window, Margin int64
	// Resolution is the length of a sub-window, in microseconds.
	Resolution int64
}

// NewLimitSet compiles valid limits. A store needs it for requests that name one account;
// those of a list of accounts are compiled once, in LimitSets.
func NewLimitSet(limits []limit.Limit) LimitSet {
	s := LimitSet{Name: EncodeLimits(limits), Limits: limits, Shortest: math.MaxInt64}
	for _, l := range limits {
		one := CompiledLimit{
			Algorithm: l.Algorithm, Max: int64(l.Max), Window: l.Window.Microseconds(), Margin: l.MarginOrDefault().Microseconds(),
			Burst: int64(l.BurstOrDefault()), Resolution: l.ResolutionOrDefault().Microseconds(), Scope: l.Scope, Zone: l.Zone, FirstUse: l.FirstUse,
		}
		one.Name = one.name()
		s.Window, s.Shortest = max(s.Window, one.Window+one.Margin), min(s.Shortest, one.Window)
		if l.Algorithm.IsLog() {
			one.Window += one.Margin
			s.LargestMax = max(s.LargestMax, one.Max)
		}
		s.Compiled = append(s.Compiled, one)
	}
	s.maxCost = s.maxCostOf("")
	return s
}

// name tells limits apart that are counted apart. Max, Margin and Burst may change while
// requests are booked.
func (l *CompiledLimit) name() string {
	name := l.Algorithm.Code() + "/" + strconv.FormatInt(l.Window, 10) + "/"
	if l.Algorithm == limit.SubWindows {
		name += strconv.FormatInt(l.Resolution, 10)
	}
	name += "/" + l.Scope + "/" + l.Zone
	if l.FirstUse {
		name += "*"
	}
	return name
}

// HasLog reports whether any of the limits is counted in a log.
func (s *LimitSet) HasLog() bool { return s.LargestMax > 0 }

// MaxCost is the largest cost of a request of those relevant scopes: the smallest Max of
// the limits that cover it, and of those that are counted by GCRA the smallest Burst.
func (s *LimitSet) MaxCost(scopes string) int64 {
	if scopes == "" {
		return s.maxCost
	}
	return s.maxCostOf(scopes)
}

func (s *LimitSet) maxCostOf(scopes string) int64 {
	most := int64(limit.MaxUnits)
	for i := range s.Compiled {
		l := &s.Compiled[i]
		if !Covers(l.Scope, scopes) {
			continue
		}
		most = min(most, l.Max)
		if l.Algorithm == limit.GCRA {
			most = min(most, l.Burst)
		}
	}
	return most
}

// SameShape reports whether the sets differ in nothing but Max and Margin. If an account's
// limits change otherwise, what was counted for the old ones says too little of the new
// ones: where no log counts, a booking from before the change counts although it is
// cancelled.
func (s *LimitSet) SameShape(o *LimitSet) bool {
	return s.Name == o.Name || slices.Equal(shapeOf(s.Name), shapeOf(o.Name))
}

// shapeOf returns the words of an encoded set without Max and the margin.
func shapeOf(name string) []string {
	words := strings.Fields(name)
	kept := words[:0]
	for i, word := range words {
		if i%wordsPerLimit != 0 && i%wordsPerLimit != 2 {
			kept = append(kept, word)
		}
	}
	return kept
}

// Covers reports whether a limit of that scope covers requests of those relevant scopes. A
// limit without a scope covers all.
func Covers(scope, scopes string) bool {
	return scope == "" || strings.Contains(","+scopes+",", ","+scope+",")
}

const wordsPerLimit = 7

// inFlightUnit stands for the unit of a limit of calls in flight. No unit is called so.
const inFlightUnit = "!"

// EncodeLimits returns the limits as a text, which is equal for equal limits: each is MAX
// WINDOW MARGIN CODE EXTRA SCOPE ZONE, separated by spaces, with durations in
// microseconds and defaults filled in. CODE is the algorithm's. EXTRA is GCRA's
// burst or the length of SubWindows' sub-windows, or 0. SCOPE and ZONE are '-' if there
// is none, and ZONE is '*' for FirstUse. A limit with a Unit or with Per, which only the budget's card has, has them behind
// SCOPE: "search@tokens/route", "-@/route". One of calls in flight, likewise, has the number as MAX, a WINDOW of a millisecond, and
// '!' as its Unit. A store that keeps limits can keep them so.
func EncodeLimits(limits []limit.Limit) string {
	var b strings.Builder
	for i, l := range limits {
		if i > 0 {
			b.WriteByte(' ')
		}
		if l.InFlight > 0 {
			l = limit.Limit{Max: l.InFlight, Window: time.Millisecond, Unit: inFlightUnit, Scope: l.Scope, Per: l.Per}
		}
		extra := int64(0)
		switch l.Algorithm {
		case limit.GCRA:
			extra = int64(l.BurstOrDefault())
		case limit.SubWindows:
			extra = l.ResolutionOrDefault().Microseconds()
		}
		zone := cmp.Or(l.Zone, "-")
		if l.FirstUse {
			zone = "*"
		}
		for _, n := range []int64{int64(l.Max), l.Window.Microseconds(), l.MarginOrDefault().Microseconds()} {
			b.WriteString(strconv.FormatInt(n, 10))
			b.WriteByte(' ')
		}
		b.WriteString(l.Algorithm.Code())
		b.WriteByte(' ')
		b.WriteString(strconv.FormatInt(extra, 10))
		b.WriteByte(' ')
		b.WriteString(cmp.Or(l.Scope, "-"))
		if l.Unit != "" || l.Per != "" {
			b.WriteString("@" + l.Unit + "/" + l.Per)
		}
		b.WriteByte(' ')
		b.WriteString(zone)
	}
	return b.String()
}

// ParseLimits reads what EncodeLimits wrote.
func ParseLimits(text string) ([]limit.Limit, error) {
	malformed := fmt.Errorf("%q is not a set of limits", text[:min(len(text), 40)])
	words := strings.Fields(text)
	if len(words) == 0 || len(words)%wordsPerLimit != 0 {
		return nil, malformed
	}
	var limits []limit.Limit
	for one := range slices.Chunk(words, wordsPerLimit) {
		var numbers [4]int64
		for i, word := range []string{one[0], one[1], one[2], one[4]} {
			n, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return nil, malformed
			}
			numbers[i] = n
		}
		l := limit.Limit{Max: int(min(numbers[0], math.MaxInt)), Window: time.Duration(numbers[1]) * time.Microsecond, Margin: time.Duration(numbers[2]) * time.Microsecond}
		algorithm, known := limit.AlgorithmOf(one[3])
		if !known {
			return nil, malformed
		}
		l.Algorithm = algorithm
		switch l.Algorithm {
		case limit.GCRA:
			l.Burst = int(min(numbers[3], math.MaxInt))
		case limit.SubWindows:
			l.Resolution = time.Duration(numbers[3]) * time.Microsecond
		}
		scope, counted, _ := strings.Cut(one[5], "@")
		if scope != "-" {
			l.Scope = scope
		}
		l.Unit, l.Per, _ = strings.Cut(counted, "/")
		switch one[6] {
		case "-":
		case "*":
			l.FirstUse = true
		default:
			l.Zone = one[6]
		}
		if l.Unit == inFlightUnit {
			l = limit.Limit{InFlight: l.Max, Scope: l.Scope, Per: l.Per}
		}
		limits = append(limits, l)
	}
	return limits, limit.Validate(limits)
}
