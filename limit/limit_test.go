package limit_test

import (
	"fmt"
	"testing"

	"time"

	"github.com/ration-go/ration/internal/testkit/rationtest"
	"github.com/ration-go/ration/limit"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

func TestParseLimitReadsLimitsAsPeopleWriteThem(t *testing.T) {
	for _, row := range []struct {
		text string
		want ration.Limit
	}{
		{"5000/1h", ration.PerHour(5000)},
		{"5000/h", ration.PerHour(5000)},
		{"5000/hour", ration.PerHour(5000)},
		{"5000/Hour", ration.PerHour(5000)},
		{"5000/60m", ration.PerHour(5000)},
		{"10/s", ration.PerSecond(10)},
		{"10/sec", ration.PerSecond(10)},
		{"10/second", ration.PerSecond(10)},
		{"10/m", ration.PerMinute(10)},
		{"10/min", ration.PerMinute(10)},
		{"10/minute", ration.PerMinute(10)},
		{"100000/d", ration.PerDay(100_000)},
		{"1000/day", ration.PerDay(1000)},
		{"1000/24h", ration.PerDay(1000)},
		{"100/15m", ration.Limit{Max: 100, Window: 15 * time.Minute}},
		{"100/1h30m", ration.Limit{Max: 100, Window: 90 * time.Minute}},
		{"100/1.5h", ration.Limit{Max: 100, Window: 90 * time.Minute}},
		{"3/7d", ration.Limit{Max: 3, Window: 7 * 24 * time.Hour}},
		{"3/366d", ration.Limit{Max: 3, Window: 366 * 24 * time.Hour}},
		{"1/1ms", ration.Limit{Max: 1, Window: time.Millisecond}},
		{"1/1500us", ration.Limit{Max: 1, Window: 1500 * time.Microsecond}},
		{fmt.Sprintf("%d/1h", limit.MaxUnits), ration.PerHour(limit.MaxUnits)},
		{"  5000 / 1h\n", ration.PerHour(5000)},
		{"100/inflight", ration.Limit{InFlight: 100}},
		{" 3 / inflight:scope=search", ration.Limit{InFlight: 3, Scope: "search"}},
		{"4/inflight:per=model,scope=search", ration.Limit{InFlight: 4, Per: "model", Scope: "search"}},
		{"90000/1m:unit=tokens", ration.Limit{Max: 90_000, Window: time.Minute, Unit: "tokens"}},
		{"900/m:fixed-window,unit=points,scope=rest", ration.Limit{Max: 900, Window: time.Minute, Unit: "points", Scope: "rest", Algorithm: ration.FixedWindow}},
	} {
		got, err := ration.ParseLimit(row.text)
		require.NoError(t, err, row.text)
		require.Equal(t, row.want, got, row.text)
	}
}

func TestParseLimitSaysWhatIsWrong(t *testing.T) {
	const form, number, window = "write it as MAX/WINDOW, such as 5000/1h", "is not a whole number of calls", "is not a window: write a duration such as 1h, 15m or 10s"
	for _, row := range []struct{ text, want string }{
		{"", form},
		{"5000", form},
		{"1h", form},
		{"/1h", number},
		{"x/1h", number},
		{"1.5/1h", number},
		{"1e3/1h", number},
		{"1_000/1h", number},
		{"0x10/1h", number},
		{"99999999999999999999/1h", number},
		{"5000/", window},
		{"5000/1", window},
		{"5000/1 h", window},
		{"5000/fortnight", window},
		{"5000/1h/2", window},
		{"5000/999999999999h", window},
		{"5000/99999999999d", window},
		{"5000/-1d", window},
		{"5000/1.5d", window},
		{"5000/NaNs", window},
		{"5000/1h:packed-log", "write stream-log, which is as exact, or sub-windows, which takes the least memory"},
		{"0/1h", "Max is 0: it must be at least 1"},
		{"-3/1h", "Max is -3: it must be at least 1"},
		{"1000000000001/1h", "Max is 1000000000001: it must be at most 1000000000000"},
		{"5/0s", "Window is 0s: it must be at least 1ms"},
		{"5/0d", "Window is 0s: it must be at least 1ms"},
		{"5/-1s", "Window is -1s: it must be at least 1ms"},
		{"5/999us", "Window is 999µs: it must be at least 1ms"},
		{"5/8785h", "Window is 8785h0m0s: it must be at most 8784h0m0s"},
		{"5/1.0000001s", "Window is 1.0000001s: it must be a whole number of microseconds"},
	} {
		got, err := ration.ParseLimit(row.text)
		require.ErrorContains(t, err, row.want, row.text)
		require.ErrorContains(t, err, `ration: limit "`+row.text+`"`)
		require.Zero(t, got, row.text)
	}
}

func TestLimitIsWrittenAsParseLimitReadsIt(t *testing.T) {
	for _, row := range []struct {
		limit ration.Limit
		want  string
	}{
		{ration.PerSecond(10), "10/1s"},
		{ration.PerMinute(10), "10/1m"},
		{ration.PerHour(5000), "5000/1h"},
		{ration.PerDay(100_000), "100000/24h"},
		{ration.Limit{Max: 1, Window: 10 * time.Minute}, "1/10m"},
		{ration.Limit{Max: 1, Window: 10 * time.Hour}, "1/10h"},
		{ration.Limit{Max: 1, Window: 90 * time.Minute}, "1/1h30m"},
		{ration.Limit{Max: 1, Window: time.Hour + 10*time.Minute}, "1/1h10m"},
		{ration.Limit{Max: 1, Window: time.Hour + time.Second}, "1/1h0m1s"},
		{ration.Limit{Max: 1, Window: time.Minute + 500*time.Millisecond}, "1/1m0.5s"},
		{ration.Limit{Max: 1, Window: time.Millisecond}, "1/1ms"},
		{ration.Limit{Max: 1, Window: 1500 * time.Microsecond}, "1/1.5ms"},
		{ration.Limit{Max: 1, Window: 366 * 24 * time.Hour}, "1/8784h"},
	} {
		require.Equal(t, row.want, row.limit.String())
		back, err := ration.ParseLimit(row.want)
		require.NoError(t, err)
		require.Equal(t, row.limit, back)
	}
}

func TestUsingChangesACopy(t *testing.T) {
	limit := ration.PerHour(5)
	require.Equal(t, ration.Algorithm(7), limit.Using(7).Algorithm)
	require.Equal(t, ration.SlidingLog, limit.Algorithm)
	require.Equal(t, "SlidingLog", limit.Algorithm.String())
	require.Equal(t, "Algorithm(7)", ration.Algorithm(7).String())
	_, err := rationtest.NewBudget(limit.Using(7)).Try(t.Context(), ration.NewToken("a"), 1)
	require.ErrorContains(t, err, "Budget.Limits[0]: Algorithm is Algorithm(7): it must be one of the package's constants")
}

// Whatever is read is a limit that a budget takes, and is written so that it is
// read again.
func FuzzParseLimit(f *testing.F) {
	for _, text := range []string{"5000/1h", "10/s", "3/7d", "1/1.5ms", "-3/1h", "5/NaN", "9/1h0m0s", "/", "1/ "} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limit, err := ration.ParseLimit(text)
		if err != nil {
			require.Zero(t, limit)
			return
		}
		back, err := ration.ParseLimit(limit.String())
		require.NoError(t, err)
		require.Equal(t, limit, back)
		_, err = rationtest.NewBudget(limit).Remaining(t.Context(), ration.NewToken("a"))
		require.NoError(t, err)
	})
}

func TestTheLimitsOfAnAccountHaveSoManySubWindows(t *testing.T) {
	limits := []ration.Limit{
		{Max: 5, Window: time.Hour, Algorithm: ration.SubWindows, Resolution: 3600 * time.Millisecond},
		{Max: 5, Window: 2 * time.Hour, Algorithm: ration.SubWindows, Resolution: 7200 * time.Millisecond},
		ration.PerHour(5),
	}
	_, err := rationtest.NewBudget(limits...).Remaining(t.Context(), ration.NewToken("a"))
	require.NoError(t, err)
	limits[2].Algorithm = ration.SubWindows
	_, err = rationtest.NewBudget(limits...).Remaining(t.Context(), ration.NewToken("a"))
	require.ErrorContains(t, err, "the limits have 2060 sub-windows: at most 2000 can be counted in one step: give them a longer Resolution")
}

func TestTheLimitsOfAnAccountAreOfFewScopes(t *testing.T) {
	var limits []ration.Limit
	for i := range 7 {
		// Two of each scope.
		limits = append(limits, ration.Limit{Max: 5, Window: time.Hour, Scope: fmt.Sprint("scope-", i%6)})
	}
	_, err := rationtest.NewBudget(limits...).Remaining(t.Context(), ration.NewToken("a"))
	require.NoError(t, err)
	limits[6].Scope = "another"
	_, err = rationtest.NewBudget(limits...).Remaining(t.Context(), ration.NewToken("a"))
	require.ErrorContains(t, err, "there are limits of 7 scopes: at most 6 can be kept in one step: give limits that never cover the same request a Budget each")
}

func TestAnAlgorithmIsFoundByItsCode(t *testing.T) {
	for _, a := range limit.Algorithms() {
		found, known := limit.AlgorithmOf(a.Code())
		require.True(t, known, a)
		require.Equal(t, a, found)
	}
	for _, code := range []string{"", "LL", "P", ration.Algorithm(7).Code()} {
		_, known := limit.AlgorithmOf(code)
		require.False(t, known, code)
	}
}
