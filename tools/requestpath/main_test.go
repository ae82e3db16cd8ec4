package main

import "testing"

// Who wants to understand a request reads the files that it enters. These are the figures as they are, and
// they only fall: lower a bound when there is less. A wait that is cancelled enters some functions more if its
// booking is answered late.
func TestRequestsEnterFewFunctionsAndFiles(t *testing.T) {
	scenarios, err := measure(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	bounds := []struct{ entries, files int }{
		{128, 31}, // a GET
		{715, 75}, // a 429 and its retry
		{215, 38}, // a cancelled wait
	}
	if len(scenarios) != len(bounds) {
		t.Fatalf("there are %d scenarios: want %d", len(scenarios), len(bounds))
	}
	for i, s := range scenarios {
		_, files, _ := s.count()
		if most := bounds[i]; len(s.Entries) > most.entries || files > most.files {
			t.Errorf("%s enters %d functions in %d files: at most %d in %d; list them with: go -C tools run ./requestpath -v",
				s.Name, len(s.Entries), files, most.entries, most.files)
		}
	}
}
