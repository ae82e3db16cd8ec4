// Package ownredis starts a redis-server of a process's own, and counts what a
// client sends to it.
package ownredis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Sent counts what a client sends to Redis, as a hook of go-redis. It leaves out
// what only sets up a connection.
type Sent struct {
	requests atomic.Int64 // a pipeline or transaction counts as one
	commands atomic.Int64 // every command, MULTI and EXEC too
}

// Reset begins at 0 again.
func (s *Sent) Reset() { s.requests.Store(0); s.commands.Store(0) }

// Read returns what was sent: a pipeline or transaction is one request of several
// commands.
func (s *Sent) Read() (requests, commands int64) { return s.requests.Load(), s.commands.Load() }

func (s *Sent) count(cmds ...redis.Cmder) {
	counted := false
	for _, cmd := range cmds {
		switch cmd.Name() {
		case "hello", "client", "auth", "select":
		default:
			counted = true
			s.commands.Add(1)
		}
	}
	if counted {
		s.requests.Add(1)
	}
}

// DialHook implements redis.Hook.
func (s *Sent) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (s *Sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.count(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (s *Sent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s.count(cmds...)
		return next(ctx, cmds)
	}
}

// NewClient returns a client, with go-redis's defaults but for two things:
// it adds nothing of its own to what it sends, and it sends nothing twice, since
// the hook is above go-redis's retries.
func NewClient(addr string) (*redis.Client, *Sent) {
	client := redis.NewClient(&redis.Options{
		Addr:                     addr,
		MaxRetries:               -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	s := new(Sent)
	client.AddHook(s)
	return client, s
}

// ServerEnv names the redis-server to run, as for the tests of this repository.
const ServerEnv = "RATION_REDIS_SERVER"

// A Server is a redis-server of this process's own on a loopback port.
type Server struct {
	Addr    string
	Version string
	// Stop ends it.
	Stop func()
}

// Start starts a redis-server and returns once it answers. It ends with
// Stop, and with this process however that ends. The args go on its command line,
// behind this package's own.
func Start(ctx context.Context, args ...string) (*Server, error) {
	binary := os.Getenv(ServerEnv)
	if binary == "" {
		binary = "redis-server"
	}
	binary, err := exec.LookPath(binary)
	if err != nil {
		return nil, fmt.Errorf("%w: `apt-get install redis-server` (Debian, Ubuntu) or `brew install redis` (macOS), "+
			"or set %s to the path of one", err, ServerEnv)
	}
	const tries = 5 // another process may take the port first
	for range tries {
		var s *Server
		if s, err = tryRedis(ctx, binary, args); err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

func tryRedis(ctx context.Context, binary string, args []string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	// A file of its own: what a Redis beside this one saves is none of ours.
	dir, err := os.MkdirTemp("", "ration-benchmarks-")
	if err != nil {
		return nil, err
	}
	// The shell ends the server when its input ends, which the kernel sees to
	// when this process is gone. In a process group of its own it does not hear
	// the terminal's signals before this process has had its say.
	shell := exec.Command("sh", slices.Concat([]string{"-c", `"$@" & read line; kill -9 $!; wait`, "redis",
		binary, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no", "--logfile", "redis.log"}, args)...)
	shell.SysProcAttr = ownGroup()
	var leash io.Closer
	if leash, err = shell.StdinPipe(); err == nil {
		err = shell.Start()
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	s := &Server{
		Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Stop: func() {
			_ = leash.Close()
			_ = shell.Wait() // its status is that of a server that was killed
			_ = os.RemoveAll(dir)
		},
	}
	if s.Version, err = answer(ctx, s.Addr, dir); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// answer waits until the server whose directory is dir answers on addr, and
// returns its version.
func answer(ctx context.Context, addr, dir string) (version string, err error) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no redis-server of ours answers on %s: %w", addr, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
		conn, err := net.Dial("tcp", addr) // go-redis would log every failure
		if err != nil {
			continue
		}
		_ = conn.Close()
		version, err = ask(ctx, addr, dir)
		if errors.Is(err, errStranger) {
			return "", err
		}
		if err == nil {
			return version, nil
		}
	}
}

var errStranger = errors.New("another server took the port")

func ask(ctx context.Context, addr, dir string) (version string, err error) {
	client, _ := NewClient(addr)
	defer client.Close()
	config, err := client.ConfigGet(ctx, "dir").Result()
	if err != nil {
		return "", err
	}
	if config["dir"] != dir {
		return "", fmt.Errorf("%s: %w", addr, errStranger)
	}
	info := client.InfoMap(ctx, "server")
	return info.Item("Server", "redis_version"), info.Err()
}

// freePort returns a loopback port on which nothing listened a moment ago, nor on
// the one 10000 above it, on which a node of a Cluster talks to the others.
func freePort() (int, error) {
	const tries, bus = 200, 10000
	var why error
	for range tries {
		port, err := listenOn(0)
		if err != nil {
			return 0, err
		}
		if _, why = listenOn(port + bus); why == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port: %w", why)
}

// listenOn listens for a moment on a loopback port, and returns which. 0: any that
// is free.
func listenOn(port int) (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
