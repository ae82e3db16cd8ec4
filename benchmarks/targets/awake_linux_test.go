package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ration-go/ration/benchmarks/internal/peers"
)

// All cores are kept awake in the turns of those racers, and of no others; and who keeps
// them awake gives way.
func TestCoresAreKeptAwake(t *testing.T) {
	b := small(t)
	spinning := func() (giving int) {
		all, err := filepath.Glob("/proc/[0-9]*/task/*/stat")
		require.NoError(t, err)
		for _, path := range all {
			stat, err := os.ReadFile(path)
			if err != nil {
				continue // it has ended
			}
			_, behind, _ := bytes.Cut(stat, []byte(") "))
			const parent, policy = 1, 38 // among the fields behind the name
			fields := strings.Fields(string(behind))
			if fields[parent] == strconv.Itoa(os.Getpid()) && fields[policy] == strconv.Itoa(unix.SCHED_IDLE) {
				giving++
			}
		}
		return giving
	}
	seen := make(map[string]int)
	count := func(name string) racer {
		return racer{name: name, calls: 10, ready: func(context.Context) (peers.Work, error) {
			return func(context.Context) error {
				seen[name] = spinning()
				return nil
			}, nil
		}}
	}
	_, err := b.speeds(t.Context(), 1, count("asleep"), keptAwake(count("awake")))
	require.NoError(t, err)
	require.Equal(t, map[string]int{"asleep": 0, "awake": runtime.NumCPU()}, seen)
}
