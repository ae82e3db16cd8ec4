package ration

import (
	"strconv"
)

// A span is a limit as the stores count it, in units and microseconds.
type span struct {
	name      string // no other limit of an account has it
	algorithm Algorithm
	max       int64
	window    int64 // a log's is longer by the margin
	margin    int64
	burst     int64
	length    int64 // of a sub-window
	scope     string
	zone      string
	firstUse  bool
}

// spans is a set of limits that are kept at once.
type spans struct {
	list    []span
	largest int64 // the largest Max of a log
	window  int64 // the longest Window
	least   int64 // the largest cost of a request without scopes
	logged  bool  // whether one of them is a log
	logs    bool  // whether all are
}

func newSpans(limits []Limit) spans {
	s := spans{logs: true}
	for _, l := range limits {
		one := span{
			algorithm: l.Algorithm, max: int64(l.Max), window: l.Window.Microseconds(), margin: l.margin().Microseconds(),
			burst: int64(l.burst()), length: l.resolution().Microseconds(), scope: l.Scope, zone: l.Zone, firstUse: l.FirstUse,
		}
		one.name = nameSpan(one)
		s.window = max(s.window, one.window+one.margin)
		if l.Algorithm.isLog() {
			one.window += one.margin
			s.largest = max(s.largest, one.max)
			s.logged = true
		} else {
			s.logs = false
		}
		s.list = append(s.list, one)
	}
	s.least = s.mostOf("")
	return s
}

// most is the largest cost of a request of those scopes: the smallest Max of the
// limits that cover it, for GCRA Burst.
func (s *spans) most(scopes string) int64 {
	if scopes == "" {
		return s.least
	}
	return s.mostOf(scopes)
}

func (s *spans) mostOf(scopes string) int64 {
	most := int64(maxUnits)
	for _, one := range s.list {
		if !covers(one.scope, scopes) {
			continue
		}
		most = min(most, one.max)
		if one.algorithm == GCRA {
			most = min(most, one.burst)
		}
	}
	return most
}

// nameSpan tells limits apart that are counted apart. Max, Margin and Burst may
// change while requests are booked.
func nameSpan(s span) string {
	name := algorithms[s.algorithm].letter + "/" + strconv.FormatInt(s.window, 10) + "/"
	if s.algorithm == SubWindows {
		name += strconv.FormatInt(s.length, 10)
	}
	name += "/" + s.scope + "/" + s.zone
	if s.firstUse {
		name += "*"
	}
	return name
}
