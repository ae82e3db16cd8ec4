//go:build !unix

package redistest

import (
	"errors"
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

// Freeze fails: only Unix stops a process from outside.
func Freeze(*os.Process) error { return errors.ErrUnsupported }

// Thaw fails.
func Thaw(*os.Process) error { return errors.ErrUnsupported }
