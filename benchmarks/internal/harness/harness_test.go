package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWorkersStopByTimeAndByCount(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	calls, took, err := Hammer(t.Context(), 8, Until{Time: time.Hour, Most: 1001}, nothing)
	require.NoError(t, err)
	require.Equal(t, 1001, calls)
	require.Less(t, took, time.Hour)

	calls, took, err = Hammer(t.Context(), 8, Until{Time: 5 * time.Millisecond}, func(context.Context) error { time.Sleep(time.Millisecond); return nil })
	require.NoError(t, err)
	require.GreaterOrEqual(t, calls, 8)
	require.LessOrEqual(t, calls, 8*(1+int(took/time.Millisecond)))
	require.GreaterOrEqual(t, took, 5*time.Millisecond)

	seen := make([]int, 4)
	calls, _, err = HammerNumbered(t.Context(), len(seen), Until{Time: time.Nanosecond, Least: 100}, func(_ context.Context, worker, i int) error {
		if seen[worker] != i {
			return fmt.Errorf("call %d of worker %d is said to be the %d-th", seen[worker], worker, i)
		}
		seen[worker]++
		return nil
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, calls, 400)
	for _, n := range seen {
		require.GreaterOrEqual(t, n, 100)
	}
}

func TestAnErrorOrTheContextStopsAllWorkers(t *testing.T) {
	var calls atomic.Int64
	_, _, err := Hammer(t.Context(), 8, Until{Least: math.MaxInt}, func(context.Context) error {
		if calls.Add(1) == 100 {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	ctx, stop := context.WithCancelCause(t.Context())
	_, _, err = Hammer(ctx, 8, Until{}, func(context.Context) error { stop(io.ErrNoProgress); return nil })
	require.ErrorIs(t, err, io.ErrNoProgress)
	_, _, err = Hammer(ctx, 8, Until{Time: time.Hour}, func(context.Context) error { return nil })
	require.ErrorIs(t, err, io.ErrNoProgress)
}

func TestCommandLine(t *testing.T) {
	for _, row := range []struct {
		args, says string
		is         error
	}{
		{args: "-n 3 -out x"},
		{args: "-h", is: flag.ErrHelp},
		{args: "-n three", is: ErrUsage, says: "run with -h"},
		{args: "now", is: ErrUsage, says: `"now"`},
	} {
		flags := flag.NewFlagSet("test", flag.ContinueOnError)
		flags.SetOutput(t.Output())
		flags.Int("n", 1, "how many")
		flags.Int("m", 1, "how many more")
		flags.String("out", "", "where")
		err := Parse(flags, strings.Fields(row.args))
		if row.is != nil {
			require.ErrorIs(t, err, row.is)
			require.ErrorContains(t, err, row.says)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "go run ./test -n 3", CommandLine("go run ./test", flags, "out"))
	}
	for _, row := range []struct {
		err    error
		says   string
		status int
	}{
		{nil, "", 0}, {flag.ErrHelp, "", 0},
		{Usage(errors.New("bad")), "test: bad; run with -h for the flags\n", 2},
		{errors.New("bad"), "test: bad\n", 1},
	} {
		var said strings.Builder
		require.Equal(t, row.status, report(&said, "test", row.err))
		require.Equal(t, row.says, said.String())
	}
}

func TestAPageIsPublished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	var stdout strings.Builder
	require.NoError(t, write("page\n", &stdout, "-"))
	require.Equal(t, "page\n", stdout.String())
	require.NoDirExists(t, dir)
	require.NoError(t, write("page\n", io.Discard, filepath.Join(dir, "page.md")))
	written, err := os.ReadFile(filepath.Join(dir, "page.md"))
	require.NoError(t, err)
	require.Equal(t, "page\n", string(written))
}
