package smoke_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

const (
	processes = 4
	callers   = 8 // of each
	lasts     = 3500 * time.Millisecond
)

var limit = ration.Limit{Max: 200, Window: time.Second}

// TestMain runs the test or, as a process that it has started, a worker.
func TestMain(m *testing.M) {
	if address := os.Getenv("SMOKE_REDIS"); address != "" {
		work(address)
		return
	}
	redistest.Main(m)
}

// work is a process whose callers call for a while. It prints when each call left, in microseconds.
func work(address string) {
	b := &ration.Budget{Name: "smoke", Limits: []ration.Limit{limit}, Store: &ration.RedisStore{Client: redis.NewClient(&redis.Options{Addr: address})}}
	ctx, stop := context.WithTimeout(context.Background(), lasts)
	defer stop()
	var print sync.Mutex
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				if _, err := b.Wait(ctx, ration.NewToken("a"), 1); err != nil {
					return
				}
				at := time.Now()
				print.Lock()
				fmt.Println(at.UnixMicro())
				print.Unlock()
			}
		})
	}
	all.Wait()
}

// Four processes share a quota: no window has more calls than the limit, and hardly any of it is left.
func TestAFleetSharesAQuota(t *testing.T) {
	server := redistest.Start(t)
	var mu sync.Mutex
	var left []time.Time
	var all sync.WaitGroup
	for range processes {
		worker := exec.CommandContext(t.Context(), os.Args[0])
		worker.Env = append(os.Environ(), "SMOKE_REDIS="+server.Addr)
		worker.Stderr = os.Stderr
		out, err := worker.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, worker.Start())
		all.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				var at int64
				_, _ = fmt.Sscan(lines.Text(), &at)
				mu.Lock()
				left = append(left, time.UnixMicro(at))
				mu.Unlock()
			}
			_ = worker.Wait()
		})
	}
	all.Wait()
	require.LessOrEqual(t, simulated.MostIn(left, limit.Window), limit.Max, "calls in a window")
	require.GreaterOrEqual(t, len(left), 4*limit.Max*9/10, "calls of the %d that the limit allows in %v", 4*limit.Max, lasts)
}
