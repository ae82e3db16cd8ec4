package stress_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-go/ration/internal/testkit/rationtest"
)

// over returns the options of a client on a network.
func over(n *rationtest.Network, o *redis.Options) *redis.Options {
	copied := *o
	copied.Dialer, copied.PoolSize, copied.MaxRetries = n.Dial, connections, -1
	return &copied
}

// A clock is a hook of a client. It tells a script the fake time at which the script is sent, as
// the server would tell the real time at which it runs one: what waits behind a reply that is read
// late must not have an old time. So it also sends again itself what go-redis would send again.
type clock struct{}

// attempts is how often go-redis sends a command whose reply is lost.
const attempts = 4

func (clock) DialHook(next redis.DialHook) redis.DialHook { return next }

func (clock) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (clock) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		const first = 4 // argument of the script, behind its digest, the number of keys and the key
		var err error
		for range attempts {
			if args := cmd.Args(); strings.HasPrefix(cmd.Name(), "eval") && len(args) > first {
				args[first] = current(args[first], time.Now())
			}
			cmd.SetErr(nil)
			if err = next(ctx, cmd); !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		return err
	}
}

// current returns a script's first argument with another time in it, if it has one: as digits, or,
// if it books, in 8 bytes behind 16 others.
func current(argument any, now time.Time) any {
	const head, least = 16, 56
	text, is := argument.(string)
	digits := strings.Trim(text, "0123456789") == ""
	switch {
	case !is || text == "":
	case digits:
		return strconv.FormatInt(now.UnixMicro(), 10)
	case len(text) > least:
		patched := []byte(text)
		binary.BigEndian.PutUint64(patched[head:], uint64(now.UnixMicro()))
		return string(patched)
	}
	return argument
}
