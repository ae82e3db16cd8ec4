package main

import "testing"

// Who wants to understand a request reads the files that it enters. More of them need a
// better reason than that a new idea has a file of its own.
func TestRequestsEnterFewFunctionsAndFiles(t *testing.T) {
	scenarios, err := measure(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	bounds := []struct{ entries, files int }{
		{90, 20},  // a GET
		{400, 30}, // a 429 and its retry
		{105, 18}, // a cancelled wait: 100, and some more if its booking is answered late
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
