//go:build unix

package redistest

import (
	"os"
	"syscall"
)

// Freeze stops a process with SIGSTOP until Thaw.
func Freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen process run on.
func Thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
