package queue_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/rationtrace"
)

// TestMain runs the tests or, as a process that they have started, a crowd.
func TestMain(m *testing.M) {
	if address := os.Getenv("QUEUE_CROWD"); address != "" {
		crowd(address)
		return
	}
	redistest.Main(m)
}

// crowd is a process whose callers all call at once, at an instant if it is told one. It prints "waits" when as many
// slots are booked as there are callers, and of each that leaves the slot, on the store's clock, when it left, and how late it says that it is, in
// microseconds.
func crowd(address string) {
	callers, _ := strconv.Atoi(os.Getenv("QUEUE_CALLERS"))
	client := redis.NewClient(&redis.Options{Addr: address})
	var left sync.WaitGroup
	// A slot is the process's: it is booked in the name of some caller, which need not be each one's turn.
	var booked atomic.Int64
	all := make(chan struct{})
	trace := &rationtrace.Trace{Booked: func(context.Context, rationtrace.Booked) {
		if booked.Add(1) == int64(callers) {
			close(all)
		}
	}}
	limit, err := ration.ParseLimit(os.Getenv("QUEUE_LIMIT"))
	if err != nil {
		panic(err)
	}
	b := budget(os.Getenv("QUEUE_BUDGET"), client, limit)
	var print sync.Mutex
	if begin, err := strconv.ParseInt(os.Getenv("QUEUE_BEGIN"), 10, 64); err == nil {
		time.Sleep(time.Until(time.UnixMicro(begin)))
	}
	for range callers {
		left.Go(func() {
			grant, err := b.Wait(ration.WithTrace(context.Background(), trace), ration.NewToken("a"), 1)
			at := time.Now()
			print.Lock()
			defer print.Unlock()
			if err == nil {
				fmt.Println("left", grant.Slot.UnixMicro(), at.UnixMicro(), grant.Late.Microseconds())
			}
		})
	}
	<-all
	print.Lock()
	fmt.Println("waits")
	print.Unlock()
	left.Wait()
}

func budget(name string, client redis.UniversalClient, limit ration.Limit) *ration.Budget {
	return &ration.Budget{Name: name, Limits: []ration.Limit{limit}, Store: &ration.RedisStore{Client: client}}
}

// A process is a crowd that a test has started.
type process struct {
	*exec.Cmd
	waits chan struct{} // closed when its callers wait
	left  chan departure
}

// A departure is that of one caller.
type departure struct {
	slot, at time.Time
	late     time.Duration // as the library says
}

// start starts a crowd, and ends it with the test.
func start(t *testing.T, server *redistest.Server, b *ration.Budget, callers int) *process {
	t.Helper()
	return startAt(t, server, b, callers, "")
}

// startAt starts a crowd that calls at an instant, in microseconds; "": at once.
func startAt(t *testing.T, server *redistest.Server, b *ration.Budget, callers int, begin string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0]), waits: make(chan struct{}), left: make(chan departure, callers)}
	p.Env = append(os.Environ(), "QUEUE_CROWD="+server.Addr, "QUEUE_BUDGET="+b.Name, "QUEUE_LIMIT="+b.Limits[0].String(), "QUEUE_CALLERS="+strconv.Itoa(callers), "QUEUE_BEGIN="+begin)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	go func() {
		defer close(p.left)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var slot, at, late int64
			if n, _ := fmt.Sscanf(lines.Text(), "left %d %d %d", &slot, &at, &late); n == 3 {
				p.left <- departure{time.UnixMicro(slot), time.UnixMicro(at), time.Duration(late) * time.Microsecond}
			} else if lines.Text() == "waits" {
				close(p.waits)
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p
}
