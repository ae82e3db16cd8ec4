package presets_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/samples"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

// answers are the samples that were given, and those of each provider.
func answers(t testing.TB) []samples.Sample {
	all, err := samples.All()
	require.NoError(t, err)
	return all
}

// conclude is what the reader says, by the names of the samples.
func conclude(f provider.Feedback) samples.Conclusion {
	c := samples.Conclusion{Refused: f.Refused, Reason: string(f.Reason), DeadToken: f.DeadToken, Retryable: f.Retryable}
	if f.Limit.Known {
		c.Limit = new(float64(f.Limit.Value))
	}
	if f.Remaining.Known {
		c.Remaining = new(float64(f.Remaining.Value))
	}
	if f.RemainingPercent.Known {
		c.RemainingPercent = new(f.RemainingPercent.Value)
	}
	if f.Wait.Known {
		c.Wait = new(f.Wait.Value.Seconds())
	}
	if f.Cooldown.Known {
		c.Cooldown = new(f.Cooldown.Value.Seconds())
	}
	if f.Scope != "" {
		c.Scope = new(string(f.Scope))
	}
	return c
}

func TestReadUnderstandsWhatProvidersSay(t *testing.T) {
	for _, s := range answers(t) {
		t.Run(s.ID, func(t *testing.T) {
			api, err := presets.Named(s.Provider)
			require.NoError(t, err)
			f := api.ReadResponse(s.Response(), s.Now)
			require.Empty(t, s.Faults(conclude(f)), "%s, %s: %+v", s.Provider, s.Title, f)
			checkWindows(t, s, f)
			if f.Refused && !f.Wait.Known {
				checkBounds(t, s, f)
			}
		})
	}
}

// checkWindows holds the windows against those that a sample names, or its one.
func checkWindows(t *testing.T, s samples.Sample, f provider.Feedback) {
	extra, _ := s.Expect["extra"].(map[string]any)
	buckets, _ := extra["buckets"].([]any)
	for _, bucket := range buckets {
		want := bucket.(map[string]any)
		found := false
		for _, w := range f.Windows {
			found = found || fits(want["limit"], w.Limit) && fits(want["remaining"], w.Remaining) &&
				lasts(want["reset_s"], w.Reset) && lasts(want["full_s"], w.Reset) && lasts(want["window_s"], w.Length)
		}
		require.True(t, found, "no window is %v: %+v", want, f.Windows)
	}
	one := func(name string, of func(w provider.Window) provider.Optional[time.Duration]) {
		if n, named := extra[name].(float64); named && n > 0 {
			found := false
			for _, w := range f.Windows {
				found = found || lasts(n, of(w))
			}
			require.True(t, found, "no window has a %s of %v: %+v", name, n, f.Windows)
		}
	}
	one("reset_s", func(w provider.Window) provider.Optional[time.Duration] { return w.Reset })
	one("full_s", func(w provider.Window) provider.Optional[time.Duration] { return w.Reset })
	one("window_s", func(w provider.Window) provider.Optional[time.Duration] { return w.Length })
	for _, name := range []string{"bucket", "object", "resource"} {
		if object, named := extra[name].(string); named {
			found := f.Object == object
			for _, w := range f.Windows {
				found = found || w.Name == object || w.Object == object
			}
			require.True(t, found, "%s %q: %+v", name, object, f)
		}
	}
}

// checkBounds holds the bounds of an unknown wait against the sample's.
func checkBounds(t *testing.T, s samples.Sample, f provider.Feedback) {
	extra, _ := s.Expect["extra"].(map[string]any)
	if n, named := extra["back_min_s"].(float64); named {
		require.GreaterOrEqual(t, f.MinWait.Seconds(), n)
	}
	if n, named := extra["back_max_s"].(float64); named {
		require.NotZero(t, f.MaxWait)
		require.LessOrEqual(t, f.MaxWait.Seconds(), n)
	}
}

func fits(want any, got provider.Optional[int64]) bool {
	n, named := want.(float64)
	return !named || got.Known && float64(got.Value) == n
}

func lasts(want any, got provider.Optional[time.Duration]) bool {
	n, named := want.(float64)
	return !named || got.Known && got.Value.Seconds() == n
}

// Every preset has samples of its own: one response that succeeded, and two others.
func TestEveryProviderHasSamples(t *testing.T) {
	for _, name := range presets.Names() {
		own, err := samples.Of(name)
		require.NoError(t, err)
		succeeded := 0
		for _, s := range own {
			require.Equal(t, name, s.Provider, s.ID)
			if s.Expect["limited"] == false {
				succeeded++
			}
		}
		require.GreaterOrEqual(t, len(own), 3, name)
		require.GreaterOrEqual(t, succeeded, 1, name)
		require.Less(t, succeeded, len(own), name)
	}
}

// What no answer says is not known, whatever the provider.
func TestReadKnowsNothingOfAnEmptyAnswer(t *testing.T) {
	for _, name := range presets.Names() {
		api, err := presets.Named(name)
		require.NoError(t, err)
		require.Equal(t, provider.Feedback{}, api.Read(provider.Response{Status: 200, Arrived: time.Now()}), name)
	}
	require.Equal(t, provider.Feedback{}, (*provider.Provider)(nil).Read(provider.Response{Status: 204}))
}

func TestReadTakesTheSkewOfTheClocksOut(t *testing.T) {
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	header := http.Header{}
	header.Set("X-RateLimit-Remaining", "0")
	header.Set("X-RateLimit-Reset", "1768478460") // 12:01:00
	read := func(ours time.Time) time.Duration {
		return new(provider.Provider).Read(provider.Response{Status: 429, Header: header, Arrived: ours}).Wait.Value
	}
	require.Equal(t, time.Minute, read(now))
	require.Equal(t, time.Duration(0), read(now.Add(time.Hour)), "it has passed by our clock")
	header.Set("Date", now.Format(http.TimeFormat))
	require.Equal(t, time.Minute, read(now.Add(time.Hour)))
	require.Equal(t, time.Minute, read(now.Add(-time.Hour)))
	require.Equal(t, time.Duration(0), read(now.Add(48*time.Hour)), "a Date of two days ago is not believed")
}

func TestReadBoundsWhatIsHostile(t *testing.T) {
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	long := strings.Repeat("9", 1<<20)
	for _, test := range []struct {
		title  string
		status int
		header [][2]string
		body   string
		wait   time.Duration
		hold   time.Duration
		left   int64 // -1: not known
	}{
		{"waits end after 7 days", 429, [][2]string{{"Retry-After", "99999999"}}, "", 7 * 24 * time.Hour, 0, -1},
		{"so do dates", 429, [][2]string{{"Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"}}, "", 7 * 24 * time.Hour, 0, -1},
		{"so do waits in a body", 429, nil, `{"message":"try again in 99999h"}`, 7 * 24 * time.Hour, 0, -1},
		{"holds after a day", 200, [][2]string{{"RateLimit", `"a";r=0;t=99999999999`}}, "", 0, 24 * time.Hour, 0},
		{"negative is no wait", 429, [][2]string{{"Retry-After", "-5"}}, "", 0, 0, -1},
		{"nor is what is no number", 429, [][2]string{{"Retry-After", "NaN"}}, "", 0, 0, -1},
		{"nor infinity", 429, [][2]string{{"Retry-After", "Inf"}}, "", 0, 0, -1},
		{"nor an exponent", 429, [][2]string{{"Retry-After", "1e12"}}, "", 0, 0, -1},
		{"nor a megabyte", 429, [][2]string{{"Retry-After", long}, {"X-RateLimit-Remaining", long}, {"RateLimit", long}}, "", 0, 0, -1},
		{"nor no UTF-8", 429, [][2]string{{"Retry-After", "\xff\xfe"}, {"X-RateLimit-Limit", "\xff"}}, "\xff\xfe{", 0, 0, -1},
		{"of two waits the longer counts", 429, [][2]string{{"Retry-After", "5"}, {"Retry-After", "7"}}, "", 7 * time.Second, 0, -1},
		{"two that differ say nothing", 200, [][2]string{{"X-RateLimit-Remaining", "5"}, {"X-RateLimit-Remaining", "0"}}, "", 0, 0, -1},
		{"two that agree are one", 200, [][2]string{{"X-RateLimit-Remaining", "5"}, {"X-RateLimit-Remaining", "5"}}, "", 0, 0, 5},
		{"more than any quota says nothing", 200, [][2]string{{"X-RateLimit-Remaining", "9999999999999"}}, "", 0, 0, -1},
		{"-1 is no count", 200, [][2]string{{"X-RateLimit-Remaining", "-1"}}, "", 0, 0, -1},
		{"but overdrawn where a limit is told", 200, [][2]string{{"X-RateLimit-Remaining", "-3"}, {"X-RateLimit-Limit", "10"}}, "", 0, 0, 0},
		{"or it was refused", 429, [][2]string{{"X-RateLimit-Remaining", "-3"}}, "", 0, 0, 0},
		{"a deep body says nothing", 429, nil, strings.Repeat(`{"error":[`, 30_000), 0, 0, -1},
		{"cached figures are old", 200, [][2]string{{"RateLimit", `"a";r=0;t=5`}, {"Age", "10"}}, "", 0, 0, -1},
	} {
		header := http.Header{}
		for _, pair := range test.header {
			header.Add(pair[0], pair[1])
		}
		f := new(provider.Provider).Read(provider.Response{Status: test.status, Header: header, Body: []byte(test.body), Arrived: now})
		require.Equal(t, test.wait, f.Wait.Value, test.title)
		require.Equal(t, test.wait > 0, f.Wait.Known, test.title)
		require.Equal(t, test.hold, f.Cooldown.Value, test.title)
		require.Equal(t, test.left >= 0, f.Remaining.Known, test.title)
		require.Equal(t, max(0, test.left), f.Remaining.Value, test.title)
		require.Equal(t, test.status == 429, f.Refused, test.title)
	}
}
