package main

import (
	"context"
	"net"
	"os/exec"
)

// startRedis starts a redis-server in dir, on a free port of 127.0.0.1, and returns its
// address, and what stops it. It may not accept connections yet.
func startRedis(ctx context.Context, dir string) (addr string, stop func(), err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	addr = free.Addr().String()
	if err := free.Close(); err != nil {
		return "", nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, "redis-server", "--bind", host, "--port", port, "--dir", dir, "--save", "")
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	return addr, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}, nil
}
