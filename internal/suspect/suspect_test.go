package suspect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/suspect"
	"github.com/ration-go/ration/provider"
)

// What a row of rejections leads to, and with which of them.
func TestWhatRejectionsShow(t *testing.T) {
	const dead, unauthorized = provider.ReasonDeadToken, provider.ReasonUnauthorized
	none, contradicted := suspect.Rejection{}, suspect.Rejection{Contradicted: true}
	invalid := suspect.Rejection{Invalid: true}
	both := suspect.Rejection{Contradicted: true, Invalid: true}
	lately := suspect.Rejection{Invalid: true, Ever: true, Lately: true}
	quarantined := suspect.State{Quarantined: true, Reason: unauthorized}
	condemned := suspect.State{Quarantined: true, Condemned: true, Reason: dead}
	for _, row := range []struct {
		name  string
		begin suspect.State
		seen  []suspect.Rejection
		want  suspect.Verdict // of the last
	}{
		{"a page may reject everybody", suspect.State{}, []suspect.Rejection{none, none}, suspect.Verdict{}},
		{"one request may be an accident", suspect.State{}, []suspect.Rejection{contradicted}, suspect.Verdict{}},
		{"two requests are none", suspect.State{}, []suspect.Rejection{contradicted, contradicted}, suspect.Verdict{Quarantine: unauthorized}},
		{"nor is one between others", suspect.State{}, []suspect.Rejection{contradicted, none, contradicted}, suspect.Verdict{Quarantine: unauthorized}},
		{"what is called invalid, and contradicted", suspect.State{}, []suspect.Rejection{both}, suspect.Verdict{Quarantine: dead}},
		{"what was quarantined", quarantined, []suspect.Rejection{contradicted}, suspect.Verdict{Quarantine: unauthorized}},
		{"a probe that nobody passes", quarantined, []suspect.Rejection{none}, suspect.Verdict{Quarantine: unauthorized}},
		{"nineteen times invalid", suspect.State{}, slices.Repeat([]suspect.Rejection{invalid}, 19), suspect.Verdict{}},
		{"twenty times invalid", suspect.State{}, slices.Repeat([]suspect.Rejection{invalid}, 20), suspect.Verdict{Quarantine: dead, Condemned: true}},
		{"not in a row", suspect.State{}, append(slices.Repeat([]suspect.Rejection{invalid}, 19), none, invalid), suspect.Verdict{}},
		{"but served a minute ago", suspect.State{}, slices.Repeat([]suspect.Rejection{lately}, 30), suspect.Verdict{}},
		{"a condemned one is invalid again", condemned, []suspect.Rejection{invalid}, suspect.Verdict{Quarantine: dead, Condemned: true}},
		{"a condemned one is rejected", condemned, []suspect.Rejection{none}, suspect.Verdict{Quarantine: dead}},
		{"it never worked", suspect.State{}, slices.Repeat([]suspect.Rejection{none}, 20), suspect.Verdict{NeverServed: 20}},
		{"which is told once", suspect.State{}, slices.Repeat([]suspect.Rejection{none}, 21), suspect.Verdict{}},
		{"it worked once", suspect.State{}, slices.Repeat([]suspect.Rejection{{Ever: true}}, 20), suspect.Verdict{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, v := row.begin, suspect.Verdict{}
			for _, r := range row.seen {
				s, v = s.Next(r)
			}
			require.Equal(t, row.want, v)
		})
	}
}

// Each quarantine is twice as long as the one before, and no longer than the longest.
func TestQuarantinesDouble(t *testing.T) {
	var s suspect.State
	v := suspect.Verdict{Quarantine: provider.ReasonUnauthorized}
	var lengths []time.Duration
	for range 6 {
		var length time.Duration
		s, length = s.Quarantine(v, 10*time.Second)
		lengths = append(lengths, length)
	}
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second, 10 * time.Second}, lengths)
	require.True(t, s.Quarantined)
	require.Equal(t, 6, s.Quarantines)
	s.Quarantines = 1000
	_, length := s.Quarantine(v, time.Hour)
	require.Equal(t, time.Hour, length)
}

// People read what there is against a token.
func TestTheEvidenceIsTold(t *testing.T) {
	var s suspect.State
	require.Empty(t, s.Evidence())
	require.Equal(t, "the account is not paid for", s.Cause())
	s, _ = s.Next(suspect.Rejection{Contradicted: true, Answer: "401 from a"})
	require.Equal(t, "another token was served a request for which it was rejected; 401 from a", s.Cause())
	s, v := s.Next(suspect.Rejection{Contradicted: true, Answer: "401 from b"})
	s, _ = s.Quarantine(v, time.Hour)
	require.Equal(t, "another token was served 2 requests for which it was rejected; 401 from a", s.Cause(), "the first answer stays")
	var condemned suspect.State
	for range suspect.MostInvalid {
		condemned, v = condemned.Next(suspect.Rejection{Invalid: true})
	}
	condemned, _ = condemned.Quarantine(v, time.Hour)
	require.Equal(t, "the provider called it invalid for 20 requests in a row and did not serve it", condemned.Evidence())
}
