package redistest

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// childAttr has the kernel kill the server when the thread that started it
// ends, and so when the program is killed.
func childAttr() *syscall.SysProcAttr {
	attr := ownGroup()
	attr.Pdeathsig = syscall.SIGKILL
	return attr
}

// guard has nothing to add to childAttr here.
func guard(int) (release func(), err error) { return func() {}, nil }

// awaitStopped returns when the process has really stopped: kill(2) returns
// before SIGSTOP has reached a process that runs on another core. It looks
// and yields rather than sleeps, so that a bubble's clock does not move.
func awaitStopped(pid int) error {
	for range 100_000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return err
		}
		// "pid (name) state ...", where the name may hold anything.
		end := bytes.LastIndexByte(stat, ')')
		if end >= 0 && bytes.HasPrefix(stat[end+1:], []byte(" T")) {
			return nil
		}
		runtime.Gosched()
	}
	return fmt.Errorf("process %d does not stop", pid)
}
