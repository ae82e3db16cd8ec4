package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/simulated"
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

// A fullDisk takes so many bytes, and then a part of what it is given.
type fullDisk struct {
	*os.File
	room int
}

func (d *fullDisk) WriteAt(p []byte, at int64) (int, error) {
	n := min(len(p), d.room)
	d.room -= n
	if n, err := d.File.WriteAt(p[:n], at); err != nil || n == len(p) {
		return n, err
	}
	return n, syscall.ENOSPC
}

// A crawl that is stopped by a full disk is resumed when there is room.
func TestCrawlStopsOnAFullDiskAndIsResumed(t *testing.T) {
	s := newSite(t, &simulated.Provider{Users: 4, PagesPerUser: 5})
	args := s.args("-limit", "5000/1h")
	o, err := parseOptions(args)
	require.NoError(t, err)
	a := &app{stdout: io.Discard, stderr: io.Discard, grace: time.Second}
	p, err := a.planCrawl(o)
	require.NoError(t, err)
	pages, err := openOutFile(o, p)
	require.NoError(t, err)
	pages.file = &fullDisk{File: pages.file.(*os.File), room: 3000}
	c := newCrawl(a, p, pages)
	failed := c.run(t.Context())
	require.ErrorIs(t, failed, syscall.ENOSPC)
	require.NoError(t, pages.close())
	sum := c.summarise(false, failed, 0)
	require.Equal(t, exitNotDone, sum.exit)
	require.Positive(t, sum.Left)
	require.Equal(t, s.lines(), sum.OK)

	status, stdout, stderr := run(t, new(app), args...)
	require.Zero(t, status, stderr)
	require.NotContains(t, stdout, "torn")
	s.requireWhole(t)
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
		require.NotContains(t, j.pages, "http://a/?2")
		require.Equal(t, "http://a/?1&next", j.pages["http://a/?1"].next)
		third := testLine(t, "http://a/?3", now)
		require.NoError(t, j.add([]byte(third)))
		require.NoError(t, j.close())
		want := first + third
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
		line + "\n" + line,
		line + "  notes\n",
		"\x00\x00\x00",
		"\x00\x00\x00" + line,
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
