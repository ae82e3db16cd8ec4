package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A Server is one redis-server process on 127.0.0.1. Its methods may be
// called from several goroutines, though those that take a testing.TB end
// the calling goroutine when they fail, as tb.FailNow does.
type Server struct {
	// Addr is host:port, and stays the same over Restart.
	Addr string
	// Version is that of Redis, such as 7.0.15.
	Version string

	bin  string
	dir  string
	port int
	args []string

	mu   sync.Mutex // protects proc
	proc *process
}

// Start runs a redis-server until the test ends and returns once it answers.
// The args go on its command line after this package's own and win over
// them: Start(t, "--maxmemory", "2mb", "--maxmemory-policy", "noeviction").
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	needRealTime(tb, "Start")
	s, err := Run(tb.Context(), args...)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	tb.Cleanup(s.Close)
	return s
}

// Run is Start for a program. The server runs until Close, or until the program ends,
// however it ends.
func Run(ctx context.Context, args ...string) (*Server, error) {
	bin, err := binary()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "redistest-")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, dir: dir, args: args}
	for range 20 {
		if s.port, err = freePort(); err != nil {
			break
		}
		s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
		if err = s.run(ctx); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// run starts a process on the server's port and waits until it answers.
func (s *Server) run(ctx context.Context) error {
	p, err := launch(s.bin, s.dir, s.argv())
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc = p
	s.mu.Unlock()
	c := s.admin()
	defer c.Close()
	err = poll(ctx, startTimeout, func(ctx context.Context) error {
		if !p.alive() {
			return gaveUp{p.death()}
		}
		// go-redis logs every dial that fails; this one is silent.
		conn, err := net.Dial("tcp", s.Addr)
		if err != nil {
			return err
		}
		_ = conn.Close()
		info, err := c.Info(ctx, "server").Result()
		if err != nil {
			return err
		}
		// Another server may have taken the port first; ours then
		// ends, and until it has, the other's answers are not ours.
		if pid := field(info, "process_id"); pid != strconv.Itoa(p.pid) {
			return fmt.Errorf("process %s answers on the port of process %d", pid, p.pid)
		}
		s.Version = field(info, "redis_version")
		return nil
	})
	if err != nil {
		p.kill()
	}
	return err
}

// argv is the command line. A first argument that is no option is a
// configuration file and stays first, as redis-server wants it.
func (s *Server) argv() []string {
	own := []string{
		"--port", strconv.Itoa(s.port),
		"--bind", "127.0.0.1",
		"--dir", s.dir,
		"--daemonize", "no",
	}
	args := s.args
	if len(args) > 0 && !strings.HasPrefix(args[0], "--") {
		return slices.Concat(args, own) // Sentinel, which knows no --save
	}
	return slices.Concat(own, []string{"--save", "", "--appendonly", "no"}, args)
}

// Client connects to the server until the test ends. Its options are
// go-redis's defaults, retries among them, but for the two handshakes that
// only add commands to what the server counts.
func (s *Server) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	c := redis.NewClient(s.options())
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *Server) options() *redis.Options {
	opt := &redis.Options{
		Addr:            s.Addr,
		DisableIdentity: true,
		// Who waits for a connection does so with a timer that go-redis may have from another bubble of fake time.
		PoolSize: 100,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	}
	if i := slices.Index(s.args, "--requirepass"); i >= 0 && i+1 < len(s.args) {
		opt.Password = s.args[i+1]
	}
	return opt
}

// adminOptions are those of this package's own calls, which poll and so want
// to hear at once that nobody answers.
func (s *Server) adminOptions() *redis.Options {
	opt := s.options()
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.ContextTimeoutEnabled = true
	return opt
}

// admin is a client for this package's own calls.
func (s *Server) admin() *redis.Client { return redis.NewClient(s.adminOptions()) }

// Kill ends the server with SIGKILL, as a crash would, and returns when it
// is gone: connections are reset and the port refuses new ones. Killing a
// dead server does nothing.
func (s *Server) Kill() { s.process().kill() }

// Restart starts the server again on the same port and returns when it
// answers. A server that still runs is killed first. Keys and loaded scripts
// are gone, unless the args turned persistence on.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	needRealTime(tb, "Restart")
	s.process().kill()
	// The port may be taken for a moment, by the probe of another test
	// looking for a free one.
	err := poll(tb.Context(), startTimeout, func(context.Context) error {
		err := s.run(tb.Context())
		if err != nil && !errors.Is(err, errPortTaken) {
			return gaveUp{err}
		}
		return err
	})
	if err != nil {
		tb.Fatalf("redistest: restart %s: %v", s.Addr, err)
	}
}

// Stop freezes the server: the kernel still accepts connections
// and data, and nothing answers, as with a machine that swaps or a black
// hole in the network. What is sent meanwhile runs after Continue.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	p := s.process()
	err := Freeze(p.handle)
	if err == nil {
		err = awaitStopped(p.pid)
	}
	if err != nil {
		tb.Fatalf("redistest: stop %s: %v", s.Addr, err)
	}
}

// Continue lets a stopped server run on.
func (s *Server) Continue(tb testing.TB) {
	tb.Helper()
	if err := Thaw(s.process().handle); err != nil {
		tb.Fatalf("redistest: continue %s: %v", s.Addr, err)
	}
}

// Alive reports whether the process runs; a stopped one does.
func (s *Server) Alive() bool { return s.process().alive() }

func (s *Server) process() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// Close kills the server, if it ever ran, and deletes its files.
func (s *Server) Close() {
	if p := s.process(); p != nil {
		p.kill()
	}
	_ = os.RemoveAll(s.dir)
}

// field is the value of a "name:value" line of INFO, or "".
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
