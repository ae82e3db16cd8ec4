package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOrphanHelper is the test binary that TestKilledBinaryLeavesNoServer
// kills; on its own it does nothing.
func TestOrphanHelper(t *testing.T) {
	if os.Getenv("REDISTEST_ORPHAN") == "" {
		return
	}
	fmt.Printf("orphan %s\n", Start(t).Addr)
	select {}
}

func TestKilledBinaryLeavesNoServer(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrphanHelper$")
	cmd.Env = append(os.Environ(), "REDISTEST_ORPHAN=1", "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var addr string
	for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
		addr, _ = strings.CutPrefix(lines.Text(), "orphan ")
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.NotEmpty(t, addr)
	require.Eventually(t, func() bool { return refuses(addr) }, 10*time.Second, 5*time.Millisecond)
}

// The shell that stands in for the parent-death signal elsewhere works here
// too, so this is where it is tested.
func TestWatchKillsWhenItsPipeEnds(t *testing.T) {
	for _, row := range []struct {
		name string
		kill bool
	}{{"released", false}, {"abandoned", true}} {
		t.Run(row.name, func(t *testing.T) {
			victim := exec.Command("sleep", "60")
			require.NoError(t, victim.Start())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = victim.Wait()
			}()
			w, err := watch(victim.Process.Pid)
			require.NoError(t, err)
			if row.kill {
				w.end()
				<-ended
				return
			}
			w.release()
			require.NoError(t, victim.Process.Signal(syscall.Signal(0)))
			require.NoError(t, victim.Process.Kill())
			<-ended
		})
	}
}

func refuses(addr string) bool {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return true
	}
	c.Close()
	return false
}
