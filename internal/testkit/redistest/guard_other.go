//go:build !linux

package redistest

import "syscall"

func childAttr() *syscall.SysProcAttr { return ownGroup() }

// guard has a shell kill the server when the program ends, since only
// Linux has a parent-death signal.
func guard(pid int) (release func(), err error) {
	w, err := watch(pid)
	if err != nil {
		return nil, err
	}
	return w.release, nil
}

// awaitStopped returns at once: no portable call tells a stopped process
// from a running one. A command sent within microseconds of Stop may still
// be answered.
func awaitStopped(int) error { return nil }
