//go:build unix

package stall

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit"
)

// A process that is stopped notes how long.
func TestAStoppedProcessNotesItsStall(t *testing.T) {
	testkit.Slow(t)
	if os.Getenv("STALL_CHILD") != "" {
		stop := Note()
		<-time.After(time.Second)
		for _, s := range stop() {
			if s.End.Sub(s.Begin) >= 300*time.Millisecond {
				os.Exit(7)
			}
		}
		os.Exit(0)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", t.Name())
	cmd.Env = append(os.Environ(), "STALL_CHILD=1")
	require.NoError(t, cmd.Start())
	<-time.After(300 * time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	<-time.After(400 * time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	_ = cmd.Wait()
	require.Equal(t, 7, cmd.ProcessState.ExitCode())
}
