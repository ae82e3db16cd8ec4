package redistest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// A process is one run of redis-server.
type process struct {
	pid    int
	handle *os.Process
	log    string        // file with all that it printed, in this run and earlier ones
	from   int64         // where in log this run starts
	exited chan struct{} // closed once the process is reaped
	state  string        // how it ended; valid after exited
}

// launch runs the binary in dir and returns as soon as it is started.
func launch(bin, dir string, args []string) (*process, error) {
	name := filepath.Join(dir, "redis.log")
	log, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}

	// A file, not a pipe: Wait returns when the process is gone, whoever
	// inherited its output.
	cmd := exec.Command(bin, args...)
	cmd.Dir = dir
	cmd.Stdout = log
	cmd.Stderr = log
	cmd.SysProcAttr = childAttr()

	p := &process{log: name, from: info.Size(), exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux sends the parent-death signal when the thread that
		// forked ends, not when the process does. This goroutine keeps
		// its thread for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		defer log.Close()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		p.handle = cmd.Process
		release, err := guard(p.pid)
		if err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			started <- err
			return
		}
		started <- nil
		_ = cmd.Wait() // the state says all; being killed is no error here
		p.state = cmd.ProcessState.String()
		release()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", bin, err)
	}
	return p, nil
}

// alive reports whether the process has not been reaped; a stopped one is
// alive.
func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill sends SIGKILL, which ends a stopped process too, and waits until the
// process is reaped. Killing one that has ended does nothing.
func (p *process) kill() {
	_ = p.handle.Kill()
	<-p.exited
}

// output is what this run printed so far.
func (p *process) output() string {
	all, err := os.ReadFile(p.log)
	if err != nil || int64(len(all)) < p.from {
		return ""
	}
	return string(bytes.TrimSpace(all[p.from:]))
}

// death describes a process that ended on its own, with the last lines it
// printed.
func (p *process) death() error {
	out := p.output()
	if strings.Contains(out, "ddress already in use") {
		return errPortTaken
	}
	lines := strings.Split(out, "\n")
	if len(lines) > 10 {
		lines = lines[len(lines)-10:]
	}
	return fmt.Errorf("redis-server ended at once (%s):\n%s", p.state, strings.Join(lines, "\n"))
}
