//go:build unix

package redistest

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A terminal sends an interrupt to the group of its program.
func TestServerIsInAGroupOfItsOwn(t *testing.T) {
	pid := Start(t).process().pid
	group, err := syscall.Getpgid(pid)
	require.NoError(t, err)
	require.Equal(t, pid, group)
}
