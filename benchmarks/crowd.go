package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/benchmarks/internal/harness"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

// The quota that crowds share: each of so many tokens has a limit of 20 calls in 2 s.
const crowdTokens = 1000

var crowdLimit = ration.Limit{Max: 20, Window: 2 * time.Second}

// A crowd is processes whose callers all want calls of one pool, again and again.
type crowd struct {
	processes, callers int  // of each process
	deadline           bool // whether the callers have one: the end of the measurement
	polls              bool // with redis_rate, in place of ration
}

// parseCrowds reads crowds as PROCESSESxCALLERS with commas. Each is measured without and with deadlines, and with redis_rate.
func parseCrowds(text string) (all []crowd, err error) {
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		var c crowd
		if n, _ := fmt.Sscanf(one, "%dx%d", &c.processes, &c.callers); n != 2 || c.processes < 1 || c.callers < 1 || c.processes*c.callers > 100_000 {
			return nil, fmt.Errorf("-crowds has %q: it must be like 8x1000, and 100,000 callers at most", one)
		}
		withDeadline := c
		withDeadline.deadline = true
		polls := c
		polls.polls = true
		all = append(all, c, withDeadline, polls)
	}
	return all, nil
}

// A crowdRow is what was measured of a crowd.
type crowdRow struct {
	crowd
	calls   int
	share   float64 // of the calls that the limit and its margin allow in the time
	most    int     // calls of a token in any window
	scripts float64 // a call
	micros  float64 // of Redis's time in scripts, a call
	longest time.Duration
}

// crowdEnv tells a process of this command that it is one of a crowd's.
const crowdEnv = "RATION_BENCHMARKS_CROWD"

// possible is how many calls the quota allows in a time that begins with a window: bursts, one a window and its margin.
func possible(length time.Duration) int {
	return crowdTokens * crowdLimit.Max * (int(length/(crowdLimit.Window+crowdLimit.DefaultMargin())) + 1)
}

// measureCrowd has a crowd call for a while, and judges when its calls left.
func measureCrowd(ctx context.Context, address string, of crowd, length time.Duration) (crowdRow, error) {
	r := crowdRow{crowd: of}
	if err := empty(ctx, address); err != nil {
		return r, err
	}
	node := harness.NewClient(address, nil)
	defer node.Close()
	before, err := harness.ScriptUsage(ctx, node)
	if err != nil {
		return r, err
	}
	begin := time.Now().Add(time.Second + time.Duration(of.processes)*60*time.Millisecond)
	var mu sync.Mutex
	left := make(map[int][]time.Time) // by token
	var group errgroup.Group
	for range of.processes {
		worker := exec.CommandContext(ctx, os.Args[0])
		worker.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %d %t %t", crowdEnv, address, begin.UnixMicro(), length.Microseconds(), of.callers, of.deadline, of.polls))
		worker.Stderr = os.Stderr
		out, err := worker.StdoutPipe()
		if err != nil {
			return r, err
		}
		if err := worker.Start(); err != nil {
			return r, err
		}
		group.Go(func() error {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				var token int
				var at, waited int64
				if _, err := fmt.Sscan(lines.Text(), &token, &at, &waited); err != nil {
					return fmt.Errorf("a process of a crowd printed %q: %w", lines.Text(), err)
				}
				mu.Lock()
				left[token] = append(left[token], time.UnixMicro(at))
				r.longest = max(r.longest, time.Duration(waited)*time.Microsecond)
				mu.Unlock()
			}
			return worker.Wait()
		})
	}
	if err := group.Wait(); err != nil {
		return r, err
	}
	after, err := harness.ScriptUsage(ctx, node)
	if err != nil {
		return r, err
	}
	for _, at := range left {
		r.most = max(r.most, simulated.MostIn(at, crowdLimit.Window))
		r.calls += len(at)
	}
	if r.calls == 0 {
		return r, errors.New("a crowd made no call")
	}
	r.share = float64(r.calls) / float64(possible(length))
	r.scripts = (after.Calls - before.Calls) / float64(r.calls)
	r.micros = harness.Micros(after.Took-before.Took) / float64(r.calls)
	return r, nil
}

// callInCrowd is a process of a crowd. For each call it prints the token's number, when it left and how long it
// had waited, in microseconds.
func callInCrowd(order string, out io.Writer) error {
	var address string
	var begun, micros int64
	var callers int
	var deadline, polls bool
	if _, err := fmt.Sscan(order, &address, &begun, &micros, &callers, &deadline, &polls); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: address, ReadTimeout: 10 * time.Second})
	defer client.Close()
	take := takeFromPool(client)
	if polls {
		take = pollTokens(client)
	}
	begin := time.UnixMicro(begun)
	ends := begin.Add(time.Duration(micros) * time.Microsecond)
	time.Sleep(time.Until(begin))
	ctx, stop := context.WithDeadline(context.Background(), ends)
	if !deadline {
		ctx, stop = context.WithCancel(context.Background())
		time.AfterFunc(time.Until(ends), stop)
	}
	defer stop()
	var mu sync.Mutex
	printed := bufio.NewWriter(out)
	var group errgroup.Group
	for caller := range callers {
		group.Go(func() error {
			for n := caller; ; n++ {
				came := time.Now()
				token, err := take(ctx, n)
				if err != nil {
					if ctx.Err() != nil || errors.Is(err, ration.ErrExhausted) {
						return nil
					}
					return err
				}
				at := time.Now()
				mu.Lock()
				fmt.Fprintln(printed, token, at.UnixMicro(), at.Sub(came).Microseconds())
				mu.Unlock()
			}
		})
	}
	return errors.Join(group.Wait(), printed.Flush())
}

// A take waits for a call of one of the tokens, and tells which.
type take func(ctx context.Context, n int) (token int, err error)

func takeFromPool(client redis.UniversalClient) take {
	b := &ration.Budget{Name: "crowd", Limits: []ration.Limit{crowdLimit}, Store: &ration.RedisStore{Client: client}}
	pool, numbers := ration.NewPool(b), make(map[string]int)
	for i := range crowdTokens {
		token := ration.NewToken("crowd " + strconv.Itoa(i))
		numbers[token.ID()] = i
		pool.Add(token)
	}
	return func(ctx context.Context, _ int) (int, error) {
		grant, err := pool.Take(ctx, 1)
		return numbers[grant.Token.ID()], err
	}
}

// pollTokens goes through the tokens in turn, and sleeps as long as redis_rate says.
func pollTokens(client *redis.Client) take {
	asking := allow(redis_rate.NewLimiter(client), crowdLimit)
	return func(ctx context.Context, n int) (int, error) {
		for {
			again, err := asking(ctx, n%crowdTokens)
			if err != nil || again == 0 {
				return n % crowdTokens, err
			}
			if err := harness.Sleep(ctx, again); err != nil {
				return 0, err
			}
		}
	}
}

func crowdTable(ctx context.Context, cfg config, addr string, progress io.Writer) (string, error) {
	var rows []crowdRow
	for _, of := range cfg.crowds {
		fmt.Fprintf(progress, "  %d x %d callers\n", of.processes, of.callers)
		r, err := measureCrowd(ctx, addr, of, cfg.wait)
		if err != nil {
			return "", err
		}
		rows = append(rows, r)
	}
	head := fmt.Sprintf("| processes x callers | with | most in a window, of %d | calls in %v | of the possible | scripts a call | Redis's time in scripts a call | longest wait |",
		crowdLimit.Max, cfg.wait)
	return harness.Table(head, rows, func(r crowdRow) string {
		how := "**ration**"
		switch {
		case r.deadline:
			how = "**ration**, with a deadline"
		case r.polls:
			how = "redis_rate, sleeping RetryAfter"
		}
		return fmt.Sprintf("| %d x %s | %s | %d | %s | %.1f %% | %.2f | %.0f µs | %.1f s |", r.processes, harness.Group(r.callers), how,
			r.most, harness.Group(r.calls), 100*r.share, r.scripts, r.micros, r.longest.Seconds())
	}), nil
}
