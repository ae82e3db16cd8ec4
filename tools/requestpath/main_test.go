package main

import (
	"fmt"
	"testing"
)

// A bound is what a scenario may enter at most, and how many scripts of Redis it may run.
type bound struct{ entries, functions, files, scripts int }

// bounds are the figures as they are. A commit that raises one lowers another by more, and says so.
var bounds = []bound{
	{126, 109, 30, 1}, // a GET
	{407, 249, 63, 1}, // a GET whose response has limit headers
	{133, 107, 33, 0}, // a GET on a MemoryStore
	{134, 115, 31, 1}, // a GET by one of three tokens
	{880, 415, 88, 6}, // a 429 and its retry
	{475, 219, 51, 5}, // a cancelled wait
}

// within reports whether no figure of s is over its bound.
func (b bound) within(s *scenario) bool {
	functions, files, _ := s.count()
	return len(s.Entries) <= b.entries && functions <= b.functions && files <= b.files && s.Scripts <= b.scripts
}

// Who wants to understand a request reads the files that it enters. On a busy machine a caller may be late and
// book again, or the status be too old and asked for, which enters more: the least of some measurements counts.
func TestRequestsEnterFewFunctionsAndFiles(t *testing.T) {
	const mostTries = 8
	tries := 0
	grown := make(map[string]string) // by the scenario, while no measurement of it was within its bounds
	err := measure(t.Context(), "../..", func(scenarios []scenario) (again bool) {
		if len(scenarios) != len(bounds) {
			t.Fatalf("there are %d scenarios: want %d", len(scenarios), len(bounds))
		}
		for i, s := range scenarios {
			_, grew := grown[s.Name]
			switch {
			case bounds[i].within(&s):
				delete(grown, s.Name)
			case tries == 0 || grew:
				functions, files, _ := s.count()
				grown[s.Name] = fmt.Sprintf("%s: %d entries, %d functions, %d files, %d scripts: at most %d; list them with: go -C tools run ./requestpath -v",
					s.Name, len(s.Entries), functions, files, s.Scripts, bounds[i])
			}
		}
		tries++
		return len(grown) > 0 && tries < mostTries
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range grown {
		t.Error(one)
	}
}
