package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
)

func testPlan(out string) (options, plan) {
	o := options{urls: "u", out: out, limits: []ration.Limit{ration.PerHour(10)}}
	return o, plan{options: o, redactor: newRedactor(auth{}, nil)}
}

func testLine(t *testing.T, u string, sent time.Time) string {
	t.Helper()
	next, body := u+"&next", "text with \"quotes\",\na line feed and \x00"
	line, err := (&record{URL: u, Status: 200, Token: "id", Sent: instant(sent), Received: instant(sent), Next: &next, Body: &body}).line()
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(line), "\n"))
	return string(line)
}

// Wherever a kill -9 tears the last line, all before it stands, and what is
// written next is whole.
func TestTornLineIsCutOffAnywhere(t *testing.T) {
	now := time.Now()
	first, second := testLine(t, "http://a/?1", now.Add(-time.Minute)), testLine(t, "http://a/?2", now)
	for cut := range len(second) {
		name := filepath.Join(t.TempDir(), "out.jsonl")
		write(t, name, first+second[:cut])
		j, err := openOutFile(testPlan(name))
		require.NoError(t, err, "cut after %d bytes", cut)
		whole := cut == len(second)-1 // only the line feed is missing
		require.Equal(t, whole, j.pages["http://a/?2"].next != "")
		require.Equal(t, "http://a/?1&next", j.pages["http://a/?1"].next)
		third := testLine(t, "http://a/?3", now)
		require.NoError(t, j.add([]byte(third)))
		require.NoError(t, j.close())
		want := first + third
		if whole {
			want = first + second + third
		}
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(data))
	}
}

func TestFileOfSomebodyElseIsLeftAlone(t *testing.T) {
	line := testLine(t, "http://a/?1", time.Now())
	for _, text := range []string{
		"\n",
		"a line\n",
		"no line feed",
		`{"id":1}` + "\n",
		`{"url":"http://a"}` + "\n",
		`{"url":"http://a","status":200,"sent":"yesterday","received":"yesterday"}` + "\n",
		`{"url":"not a URL","status":200,"sent":"2026-01-01T00:00:00Z","received":"2026-01-01T00:00:00Z"}` + "\n",
		`{"url":"http://a","status":2,"sent":"2026-01-01T00:00:00Z","received":"2026-01-01T00:00:00Z"}` + "\n",
		line + "notes",
		line[:20] + "\n" + line,
		line + "\x00\x00\x00",
		"\xff\xfe",
	} {
		name := filepath.Join(t.TempDir(), "out.jsonl")
		write(t, name, text)
		_, err := openOutFile(testPlan(name))
		require.ErrorContains(t, err, "was not written by crawler-demo", text)
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, text, string(data))
	}
}

func TestFileIsWrittenByOneCrawlerAtATime(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out.jsonl")
	j, err := openOutFile(testPlan(name))
	require.NoError(t, err)
	_, err = openOutFile(testPlan(name))
	require.ErrorContains(t, err, "is being written by another crawler")
	require.NoError(t, j.close())
	j, err = openOutFile(testPlan(name))
	require.NoError(t, err)
	require.NoError(t, j.close())
}

func TestOnlyCallsOfTheLastWindowAreRecorded(t *testing.T) {
	now := time.Now()
	name := filepath.Join(t.TempDir(), "out.jsonl")
	write(t, name, testLine(t, "http://a/?1", now.Add(-61*time.Minute))+testLine(t, "http://a/?2", now.Add(-time.Minute))+
		testLine(t, "http://a/?2", now.Add(-2*time.Minute))+testLine(t, "http://a/?3", now.Add(time.Minute)))
	j, err := openOutFile(testPlan(name))
	require.NoError(t, err)
	defer j.close()
	for i := range j.calls {
		j.calls[i].Token, j.calls[i].At = "secret", j.calls[i].At.Local()
	}
	require.Equal(t, []earlierCall{
		{"secret", now.Add(-2 * time.Minute).Truncate(time.Microsecond)},
		{"secret", now.Add(-time.Minute).Truncate(time.Microsecond)},
	}, j.earlierCalls(), "oldest first, and none that a clock put into the future")
}
