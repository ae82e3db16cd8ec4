package main

import (
	"fmt"
	"testing"
)

// bounds are the figures as they are, and they only fall: lower one when there is less.
var bounds = []struct{ entries, files int }{
	{131, 32}, // a GET
	{890, 82}, // a 429 and its retry
	{264, 41}, // a cancelled wait: 255, and some more if its booking is answered late
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
			_, files, _ := s.count()
			_, grew := grown[s.Name]
			switch most := bounds[i]; {
			case len(s.Entries) <= most.entries && files <= most.files:
				delete(grown, s.Name)
			case tries == 0 || grew:
				grown[s.Name] = fmt.Sprintf("%s enters %d functions in %d files: at most %d in %d; list them with: go -C tools run ./requestpath -v",
					s.Name, len(s.Entries), files, most.entries, most.files)
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
