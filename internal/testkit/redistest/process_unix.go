//go:build unix

package redistest

import (
	"os"
	"syscall"
)

// ownGroup starts a process in a process group of its own, where it does not hear the
// terminal's signals before the program that started it has had its say.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Freeze stops a process with SIGSTOP until Thaw.
func Freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// Thaw lets a frozen process run on.
func Thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
