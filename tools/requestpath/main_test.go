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
// book again, which enters more: the least of a few measurements counts.
func TestRequestsEnterFewFunctionsAndFiles(t *testing.T) {
	const tries = 3
	grown := make([]string, len(bounds)) // by the scenario; empty: one of its measurements was within its bounds
	for try := range tries {
		scenarios, err := measure(t.Context(), "../..")
		if err != nil {
			t.Fatal(err)
		}
		if len(scenarios) != len(bounds) {
			t.Fatalf("there are %d scenarios: want %d", len(scenarios), len(bounds))
		}
		left := false
		for i, s := range scenarios {
			_, files, _ := s.count()
			switch most := bounds[i]; {
			case len(s.Entries) <= most.entries && files <= most.files:
				grown[i] = ""
			case try == 0 || grown[i] != "":
				grown[i] = fmt.Sprintf("%s enters %d functions in %d files: at most %d in %d; list them with: go -C tools run ./requestpath -v",
					s.Name, len(s.Entries), files, most.entries, most.files)
				left = true
			}
		}
		if !left {
			return
		}
	}
	for _, one := range grown {
		if one != "" {
			t.Error(one)
		}
	}
}
