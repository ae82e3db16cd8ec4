// Package harnesstest tests what all commands of this module do alike.
package harnesstest

import (
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/benchmarks/internal/harness"
)

// A Command is what harness.Main runs.
type Command func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Refuses demands that each command line is an error of usage with the text behind it, and so is an argument that no
// flag takes.
func Refuses(t *testing.T, command Command, rows [][2]string) {
	for _, row := range append(rows, [2]string{"now", `"now"`}) {
		t.Run(row[0], func(t *testing.T) {
			err := command(t.Context(), strings.Fields(row[0]), io.Discard, io.Discard)
			require.ErrorIs(t, err, harness.ErrUsage)
			require.ErrorContains(t, err, row[1])
		})
	}
	require.ErrorIs(t, command(t.Context(), []string{"-h"}, io.Discard, io.Discard), flag.ErrHelp)
}

// Page runs a command, demands that it prints and keeps the same page, which tells how
// to run it again and not where it was kept, and returns the page.
func Page(t *testing.T, command Command, args, again string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "results", "page.md")
	var stdout strings.Builder
	require.NoError(t, command(t.Context(), append(strings.Fields(args), "-out", out), &stdout, io.Discard))
	written, err := os.ReadFile(out)
	require.NoError(t, err)
	page := stdout.String()
	require.Equal(t, page, string(written))
	require.Contains(t, page, "    "+again+"\n")
	require.NotContains(t, page, out)
	return page
}
