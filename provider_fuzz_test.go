package ration_test

import (
	"bytes"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

// Whatever is sent, what is read of it is bounded, consistent, and always the same.
//
//	go test -run '^$' -fuzz FuzzRead -fuzztime 10m .
func FuzzRead(f *testing.F) {
	names := presets.Names()
	number := make(map[string]int)
	for i, name := range names {
		number[name] = i
	}
	for _, s := range answers(f) {
		var header strings.Builder
		for _, pair := range s.Headers {
			header.WriteString(pair[0] + ": " + pair[1] + "\n")
		}
		f.Add(number[s.Provider], s.Status, header.String(), []byte(s.Body), s.Now.Unix())
	}
	f.Fuzz(func(t *testing.T, of, status int, lines string, body []byte, now int64) {
		api, err := presets.Named(names[int(uint(of)%uint(len(names)))])
		require.NoError(t, err)
		a := provider.Response{Status: status, Header: http.Header{}, Body: body, Arrived: time.Unix(now%(1<<40), 0)}
		for line := range strings.Lines(lines) {
			name, value, _ := strings.Cut(line, ":")
			a.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
		before := a.Header.Clone()
		kept := bytes.Clone(body)
		read := api.Read(a)
		require.Equal(t, read, api.Read(a), "the same answer says the same")
		require.Equal(t, before, a.Header)
		require.Equal(t, kept, body)
		checkBounded(t, read)
	})
}

func checkBounded(t *testing.T, f ration.Feedback) {
	day := 24 * time.Hour
	require.Equal(t, f.Refused, f.Reason.Refuses())
	require.False(t, f.Wait.Known && !f.Refused, "a wait is a refusal's: %+v", f)
	require.False(t, f.Wait.Known && f.Wait.Value <= 0, "%+v", f)
	require.False(t, f.Cooldown.Known && (f.Refused || f.Cooldown.Value < 0), "%+v", f)
	require.LessOrEqual(t, f.Wait.Value, 7*day)
	require.LessOrEqual(t, f.Cooldown.Value, day)
	require.True(t, f.MinWait >= 0 && f.MaxWait >= 0 && (f.MaxWait == 0 || f.MinWait <= f.MaxWait), "%+v", f)
	require.True(t, f.Refused && !f.Wait.Known || f.MinWait == 0 && f.MaxWait == 0, "%+v", f)
	require.False(t, f.DeadToken && (f.Refused || f.Retryable), "%+v", f)
	require.LessOrEqual(t, len(f.Windows), 32)
	require.True(t, !f.Limit.Known || f.Limit.Value > 0, "%+v", f)
	require.GreaterOrEqual(t, f.Remaining.Value, int64(0))
	if p := f.RemainingPercent; p.Known {
		require.True(t, p.Value >= 0 && p.Value <= 100, "%v", p.Value)
	}
	for _, w := range f.Windows {
		require.False(t, w.Limit.Known && (w.Limit.Value < 1 || w.Limit.Value > 1e12), "%+v", w)
		require.True(t, w.Remaining.Value >= 0 && w.Remaining.Value <= 1e12 && w.Used.Value >= 0, "%+v", w)
		require.True(t, w.Reset.Value >= 0 && w.Reset.Value <= 366*day && w.Length.Value >= 0 && w.Length.Value <= 366*day, "%+v", w)
		require.False(t, w.Reset.Known && w.Reset.Value == 0, "%+v", w)
		require.False(t, math.IsNaN(w.UsedPercent.Value) || math.IsInf(w.Rate, 0) || math.IsNaN(w.Rate) || w.UsedPercent.Value < 0, "%+v", w)
		for _, name := range []string{w.Name, w.Unit, w.Object, w.By, string(w.Scope)} {
			require.LessOrEqual(t, len(name), 64, "%+v", w)
			require.NotContains(t, name, "\n")
		}
	}
}
