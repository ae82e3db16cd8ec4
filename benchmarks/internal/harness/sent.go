package harness

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Sent counts what a client sends to Redis, as a hook of go-redis. It leaves out
// what only sets up a connection.
type Sent struct{ requests atomic.Int64 }

// Reset begins at 0 again.
func (s *Sent) Reset() { s.requests.Store(0) }

// Read returns how many requests were sent: a pipeline or transaction is one.
func (s *Sent) Read() int64 { return s.requests.Load() }

// Add counts a request that another client sends.
func (s *Sent) Add() { s.requests.Add(1) }

func (s *Sent) count(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		switch cmd.Name() {
		case "hello", "client", "auth", "select":
		default:
			s.requests.Add(1)
			return
		}
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
// the hook is above go-redis's retries. What it sends is counted, unless sent is nil.
func NewClient(addr string, sent *Sent) *redis.Client {
	client := redis.NewClient(&redis.Options{
		Addr:                     addr,
		MaxRetries:               -1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	if sent != nil {
		client.AddHook(sent)
	}
	return client
}
