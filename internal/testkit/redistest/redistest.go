// Package redistest starts real redis-server processes for tests: one server
// ([Start]), one shared by all tests of a package ([Shared]), a Cluster
// ([StartCluster]) or a primary with a replica and a Sentinel
// ([StartSentinel]); and for programs that measure ([Run], [RunCluster]). Nothing is simulated, because the faults worth testing
// for live in the difference: a simulator prints large numbers right that
// Redis rounds, and knows neither slots nor memory limits.
//
// Every server listens on 127.0.0.1 on a port of its own, keeps its files in
// a directory of its own, persists nothing, and is killed and reaped by
// tb.Cleanup or Close. A program that is itself killed takes its servers along.
//
// A missing redis-server fails the test; it never skips it. The environment
// variable RATION_REDIS_SERVER names the binary to run if it is not the
// redis-server on PATH, which is how one suite meets several versions of
// Redis.
//
// # Bubbles
//
// Servers are started outside of a testing/synctest bubble and used inside.
// A process started in a bubble would stop the bubble's clock for as long as
// it runs, so Start and its kin, and Restart, fail the test there. Client,
// Name, Commands, Kill, Stop and Continue work in a bubble, and so does
// Shared once the server runs. A Sentinel's FailoverClient does not: its
// subscription always waits for the network.
package redistest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// ServerEnv is the environment variable that names the redis-server binary.
const ServerEnv = "RATION_REDIS_SERVER"

// startTimeout bounds every wait for servers to become ready. A server takes
// about 10 ms and a cluster about 2 s; the rest is for a loaded machine.
const startTimeout = 30 * time.Second

// callTimeout bounds one try of a command while waiting.
const callTimeout = time.Second

// errMissing tells what to install. It is one line, since a test run prints
// it once for each test that needs a server.
var errMissing = errors.New("no redis-server on PATH: `apt-get install redis-server` (Debian, Ubuntu) " +
	"or `brew install redis` (macOS), or set " + ServerEnv + " to the path of one")

// binary finds the redis-server to run.
func binary() (string, error) {
	if path := os.Getenv(ServerEnv); path != "" {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", fmt.Errorf("%s: %w", ServerEnv, err)
		}
		return found, nil
	}
	found, err := exec.LookPath("redis-server")
	if err != nil {
		return "", errMissing
	}
	return found, nil
}

// needRealTime fails the test inside a synctest bubble, whose clock starts
// at 2000-01-01 and stands still while anything waits for the network.
func needRealTime(tb testing.TB, name string) {
	tb.Helper()
	if time.Now().Year() < 2020 {
		tb.Fatalf("redistest: %s inside a synctest bubble: call it before the bubble starts", name)
	}
}
