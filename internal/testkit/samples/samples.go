// Package samples has responses of providers, and what a correct reader concludes from each. They
// are in the folder responses: NAME.json has those of one provider, and responses.json those of
// many.
package samples

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"
)

// A Sample is one response.
type Sample struct {
	ID       string // no two samples have the same
	Provider string // the name of the preset that reads it
	Title    string
	Now      time.Time // when it arrived
	Status   int
	Headers  [][2]string // names and values
	Body     string
	Expect   Expected
}

// Expected is what a correct reader concludes, by the names in the files.
type Expected map[string]any

// A Conclusion is what the reader under test concluded, by the names that "ration explain
// -json" prints.
type Conclusion struct {
	Refused          bool     `json:"refused"`
	Reason           string   `json:"reason"`
	Limit            *float64 `json:"limit"`
	Remaining        *float64 `json:"remaining"`
	RemainingPercent *float64 `json:"remaining_percent"`
	Wait             *float64 `json:"wait_s"`
	Cooldown         *float64 `json:"cooldown_s"`
	Scope            *string  `json:"scope"`
	DeadToken        bool     `json:"dead_token"`
	Retryable        bool     `json:"retryable"`
}

//go:embed responses/*.json
var files embed.FS

// All returns the samples of all providers. It fails if an ID occurs twice.
func All() ([]Sample, error) {
	names, err := files.ReadDir("responses")
	if err != nil {
		return nil, err
	}
	var all []Sample
	seen := make(map[string]bool)
	for _, name := range names {
		samples, err := read(name.Name())
		if err != nil {
			return nil, err
		}
		for _, s := range samples {
			if seen[s.ID] {
				return nil, fmt.Errorf("samples: %s: the ID %s occurs twice", name.Name(), s.ID)
			}
			seen[s.ID] = true
		}
		all = append(all, samples...)
	}
	return all, nil
}

// Of returns the samples in the file of a provider, by the name of its preset.
func Of(provider string) ([]Sample, error) { return read(provider + ".json") }

func read(file string) ([]Sample, error) {
	data, err := files.ReadFile("responses/" + file)
	if err != nil {
		return nil, err
	}
	var samples []Sample
	if err := json.Unmarshal(data, &samples); err != nil {
		return nil, fmt.Errorf("samples: %s: %w", file, err)
	}
	return samples, nil
}

// Header returns the sample's header as net/http has it.
func (s *Sample) Header() http.Header {
	h := make(http.Header)
	for _, pair := range s.Headers {
		h.Add(pair[0], pair[1])
	}
	return h
}

// Response returns the sample as a client gets it.
func (s *Sample) Response() *http.Response {
	return &http.Response{StatusCode: s.Status, Header: s.Header(), ContentLength: int64(len(s.Body)),
		Body: io.NopCloser(strings.NewReader(s.Body))}
}

// Raw returns the sample as curl -i prints it.
func (s *Sample) Raw() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/2 %d\r\n", s.Status)
	for _, pair := range s.Headers {
		fmt.Fprintf(&b, "%s: %s\r\n", pair[0], pair[1])
	}
	b.WriteString("\r\n" + s.Body)
	return b.String()
}

// Faults returns how a conclusion differs from what the sample expects. If the sample has
// "any_of", one of its options must fit, together with the names outside of it.
//
// Three names in the files differ from those of a Conclusion: limited is refused, back_s is
// wait_s, and hold_s is cooldown_s. A hold_s of 0 fits a cooldown that is unknown or 0. The
// reason is checked if extra.kind names it. Numbers may differ by tolerance_s, or 1 ms.
func (s *Sample) Faults(got Conclusion) []string {
	options, _ := s.Expect["any_of"].([]any)
	if len(options) == 0 {
		return s.faults(got, nil)
	}
	var least []string
	for i, option := range options {
		if faults := s.faults(got, option.(map[string]any)); len(faults) == 0 {
			return nil
		} else if i == 0 || len(faults) < len(least) {
			least = faults
		}
	}
	return least
}

func (s *Sample) faults(got Conclusion, option map[string]any) (faults []string) {
	expect := make(Expected)
	for name, value := range s.Expect {
		expect[name] = value
	}
	for name, value := range option {
		expect[name] = value
	}
	differs := func(name string, got any) {
		faults = append(faults, fmt.Sprintf("%s is %v, and not %v", name, got, expect[name]))
	}
	if expect["limited"] != got.Refused {
		differs("limited", got.Refused)
	}
	tolerance, _ := expect["tolerance_s"].(float64)
	tolerance = max(tolerance, 0.001)
	for name, number := range map[string]*float64{"limit": got.Limit, "remaining": got.Remaining,
		"remaining_percent": got.RemainingPercent, "back_s": got.Wait, "hold_s": got.Cooldown} {
		want, named := expect[name]
		if !named {
			continue
		}
		expected, some := want.(float64)
		switch {
		case name == "hold_s" && expected == 0 && (number == nil || *number == 0):
		case some != (number != nil), some && math.Abs(expected-*number) > tolerance:
			differs(name, show(number))
		}
	}
	switch want := expect["scope"].(type) {
	case nil:
		if got.Scope != nil {
			differs("scope", *got.Scope)
		}
	case string:
		if got.Scope == nil || *got.Scope != want {
			differs("scope", show(got.Scope))
		}
	}
	dead, _ := expect["dead_token"].(bool)
	if dead != got.DeadToken {
		differs("dead_token", got.DeadToken)
	}
	if retryable, named := expect["retryable"].(bool); named && retryable != got.Retryable {
		differs("retryable", got.Retryable)
	}
	extra, _ := expect["extra"].(map[string]any)
	if kind, named := extra["kind"].(string); named && kind != got.Reason {
		faults = append(faults, fmt.Sprintf("the reason is %q, and not %q", got.Reason, kind))
	}
	return faults
}

func show[T any](p *T) any {
	if p == nil {
		return "null"
	}
	return *p
}
