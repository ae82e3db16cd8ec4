package redistest

import (
	"os"
	"os/exec"
	"strconv"
)

// A watcher is a shell that kills a process when this one ends, however it
// ends: the kernel then closes the pipe that the shell reads.
type watcher struct {
	shell *exec.Cmd
	pipe  *os.File
}

// watch starts a watcher of the process.
func watch(pid int) (*watcher, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// read succeeds on a line, which is release's word, and fails at the
	// end of the pipe, which is the death of this process.
	shell := exec.Command("sh", "-c", `read word || kill -9 "$1"`, "redistest-watch", strconv.Itoa(pid))
	shell.Stdin = r
	shell.SysProcAttr = ownGroup()
	if err := shell.Start(); err != nil {
		w.Close()
		return nil, err
	}
	return &watcher{shell, w}, nil
}

// release ends the shell without killing anything. Call it once the process
// is reaped, before its number can be given to another.
func (w *watcher) release() {
	_, _ = w.pipe.WriteString("release\n")
	w.end()
}

// end closes the pipe and waits for the shell, which kills unless released.
func (w *watcher) end() {
	w.pipe.Close()
	_ = w.shell.Wait()
}
