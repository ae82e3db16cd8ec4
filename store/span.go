package store

import (
	"strconv"
	"strings"

	"github.com/ration-go/ration/limit"
)

// A span is a limit as the stores count it, in units and microseconds.
type CompiledLimit struct {
	Name      string // no other limit of an account has it
	Algorithm limit.Algorithm
	Max       int64
	Window    int64 // a log's is longer by the margin
	Margin    int64
	Burst     int64
	Length    int64 // of a sub-window
	Scope     string
	Zone      string
	FirstUse  bool
}

// spans is a set of limits that are kept at once.
type spans struct {
	List    []CompiledLimit
	Largest int64 // the largest Max of a log
	Window  int64 // the longest Window
	Least   int64 // the largest cost of a request without scopes
	Logged  bool  // whether one of them is a log
	Logs    bool  // whether all are
}

func newSpans(limits []limit.Limit) spans {
	s := spans{Logs: true}
	for _, l := range limits {
		one := CompiledLimit{
			Algorithm: l.Algorithm, Max: int64(l.Max), Window: l.Window.Microseconds(), Margin: l.MarginOrDefault().Microseconds(),
			Burst: int64(l.BurstOrDefault()), Length: l.ResolutionOrDefault().Microseconds(), Scope: l.Scope, Zone: l.Zone, FirstUse: l.FirstUse,
		}
		one.Name = nameSpan(one)
		s.Window = max(s.Window, one.Window+one.Margin)
		if l.Algorithm.IsLog() {
			one.Window += one.Margin
			s.Largest = max(s.Largest, one.Max)
			s.Logged = true
		} else {
			s.Logs = false
		}
		s.List = append(s.List, one)
	}
	s.Least = s.mostOf("")
	return s
}

// most is the largest cost of a request of those scopes: the smallest Max of the
// limits that cover it, for GCRA Burst.
func (s *spans) Most(scopes string) int64 {
	if scopes == "" {
		return s.Least
	}
	return s.mostOf(scopes)
}

func (s *spans) mostOf(scopes string) int64 {
	most := int64(limit.MaxUnits)
	for _, one := range s.List {
		if !Covers(one.Scope, scopes) {
			continue
		}
		most = min(most, one.Max)
		if one.Algorithm == limit.GCRA {
			most = min(most, one.Burst)
		}
	}
	return most
}

// nameSpan tells limits apart that are counted apart. Max, Margin and Burst may
// change while requests are booked.
func nameSpan(s CompiledLimit) string {
	name := limit.AlgorithmsOf[s.Algorithm].Letter + "/" + strconv.FormatInt(s.Window, 10) + "/"
	if s.Algorithm == limit.SubWindows {
		name += strconv.FormatInt(s.Length, 10)
	}
	name += "/" + s.Scope + "/" + s.Zone
	if s.FirstUse {
		name += "*"
	}
	return name
}

// covers reports whether a limit of that scope covers requests of those.
func Covers(scope, scopes string) bool {
	return scope == "" || strings.Contains(","+scopes+",", ","+scope+",")
}
