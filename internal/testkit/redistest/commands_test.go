package redistest_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

// Each row is one call and what it adds to Commands.
func TestCommandsCountsWhatClientsSent(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	script := redis.NewScript(`redis.call("SET", KEYS[1], 1) redis.call("GET", KEYS[1]) return redis.call("INCR", KEYS[1])`)
	run := func() error { return script.Run(t.Context(), c, []string{"k"}).Err() }
	for _, row := range []struct {
		name string
		call func() error
		want int64
	}{
		{"NOSCRIPT, then EVAL", run, 2},
		{"EVALSHA, three calls inside", run, 1},
		{"SCRIPT LOAD", func() error { return script.Load(t.Context(), c).Err() }, 1},
		{"EVAL_RO", func() error { return c.EvalRO(t.Context(), "return 1", nil).Err() }, 1},
		{"a script that fails", func() error { _ = c.Eval(t.Context(), "error()", nil); return nil }, 1},
		{"a script inside a script is refused", func() error {
			return c.Eval(t.Context(), `redis.pcall("EVAL", "return 1", 0) return 1`, nil).Err()
		}, 1},
		{"two in a pipeline", func() error {
			_, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
				p.Eval(t.Context(), "return 1", nil)
				p.Eval(t.Context(), "return 2", nil)
				return nil
			})
			return err
		}, 2},
		{"GET is not one", func() error { return c.Get(t.Context(), "k").Err() }, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := s.Commands(t)
			require.NoError(t, row.call())
			require.Equal(t, row.want, s.Commands(t)-before)
		})
	}
}

func TestRecordingLeavesOutWhatScriptsCall(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	require.NoError(t, c.Set(t.Context(), "before", 1, 0).Err())
	r := s.Record(t)
	require.Empty(t, r.Commands(t))
	require.NoError(t, c.Eval(t.Context(), `redis.call("SET", KEYS[1], "] \" [0 lua] x") return 1`, []string{"k"}).Err())
	require.NoError(t, c.Get(t.Context(), "k").Err())
	require.Equal(t, []string{"eval", "get"}, r.Commands(t))
	require.NoError(t, c.Echo(t.Context(), "mine").Err())
	require.NoError(t, c.Set(t.Context(), "a\nb", "[0 lua] \"get\"", 0).Err())
	require.Equal(t, []string{"eval", "get", "echo", "set"}, r.Commands(t))
}
