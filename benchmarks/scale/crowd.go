package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
}

// parseCrowds reads crowds as PROCESSESxCALLERS with commas. Each is measured without and with deadlines.
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
		all = append(all, c, withDeadline)
	}
	return all, nil
}

// A crowdRow is what was measured of a crowd.
type crowdRow struct {
	crowd
	calls    int
	share    float64 // of the calls that the limit and its margin allow in the time
	most     int     // calls of a token in any window
	scripts  float64 // a call
	micros   float64 // of Redis's time in scripts, a call
	longest  time.Duration
	shortest float64 // the calls of the process with the fewest, of an equal share
}

// crowdEnv tells a process of this command that it is one of a crowd's.
const crowdEnv = "RATION_SCALE_CROWD"

// possible is how many calls the quota allows in a time that begins with a window: bursts, one a window and its margin.
func possible(length time.Duration) int {
	return crowdTokens * crowdLimit.Max * (int(length/(crowdLimit.Window+crowdLimit.DefaultMargin())) + 1)
}

// measureCrowd has a crowd call for a while, and judges when its calls left.
func measureCrowd(ctx context.Context, address string, of crowd, length time.Duration) (crowdRow, error) {
	r := crowdRow{crowd: of}
	node, _ := harness.NewClient(address)
	defer node.Close()
	if err := node.FlushAll(ctx).Err(); err != nil {
		return r, err
	}
	before, err := readUsage(ctx, node)
	if err != nil {
		return r, err
	}
	begin := time.Now().Add(time.Second + time.Duration(of.processes)*60*time.Millisecond)
	var mu sync.Mutex
	left := make(map[int][]time.Time) // by token
	byProcess := make([]int, of.processes)
	var group errgroup.Group
	for i := range of.processes {
		worker := exec.CommandContext(ctx, os.Args[0])
		worker.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %d %t", crowdEnv, address, begin.UnixMicro(), length.Microseconds(), of.callers, of.deadline))
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
				byProcess[i]++
				r.longest = max(r.longest, time.Duration(waited)*time.Microsecond)
				mu.Unlock()
			}
			return worker.Wait()
		})
	}
	if err := group.Wait(); err != nil {
		return r, err
	}
	after, err := readUsage(ctx, node)
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
	r.scripts = (after.scripts - before.scripts) / float64(r.calls)
	r.micros = harness.Micros(after.script-before.script) / float64(r.calls)
	r.shortest = float64(slices.Min(byProcess)*of.processes) / float64(r.calls)
	return r, nil
}

// callInCrowd is a process of a crowd. For each call it prints the token's number, when it left and how long it
// had waited, in microseconds.
func callInCrowd(order string, out io.Writer) error {
	var address string
	var begun, micros int64
	var callers int
	var deadline bool
	if _, err := fmt.Sscan(order, &address, &begun, &micros, &callers, &deadline); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: address, ReadTimeout: 10 * time.Second})
	defer client.Close()
	b := &ration.Budget{Name: "crowd", Limits: []ration.Limit{crowdLimit}, Store: &ration.RedisStore{Client: client}}
	pool, numbers := ration.NewPool(b), make(map[string]int)
	for i := range crowdTokens {
		token := ration.NewToken("crowd " + strconv.Itoa(i))
		numbers[token.ID()] = i
		pool.Add(token)
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
	for range callers {
		group.Go(func() error {
			for {
				came := time.Now()
				grant, err := pool.Take(ctx, 1)
				if err != nil {
					if ctx.Err() != nil || errors.Is(err, ration.ErrExhausted) {
						return nil
					}
					return err
				}
				at := time.Now()
				mu.Lock()
				fmt.Fprintln(printed, numbers[grant.Token.ID()], at.UnixMicro(), at.Sub(came).Microseconds())
				mu.Unlock()
			}
		})
	}
	return errors.Join(group.Wait(), printed.Flush())
}

// crowds is the table of crowds.
func crowds(all []crowdRow, length time.Duration) string {
	if len(all) == 0 {
		return ""
	}
	head := fmt.Sprintf("| processes x callers | deadline | calls in %v | of the possible | most in a window of %d | scripts a call | µs of Redis's time in scripts a call | longest wait | the process with the fewest |",
		length, crowdLimit.Max)
	return "\nCrowds that wait for one pool of " + harness.Group(crowdTokens) + " tokens of " + crowdLimit.String() + ":\n\n" +
		harness.Table(head, all, func(r crowdRow) string {
			deadline := "none"
			if r.deadline {
				deadline = "the end"
			}
			return fmt.Sprintf("| %d x %s | %s | %s | %.1f %% | %d | %.3f | %.0f | %.1f s | %.0f %% of an equal share |", r.processes, harness.Group(r.callers), deadline,
				harness.Group(r.calls), 100*r.share, r.most, r.scripts, r.micros, r.longest.Seconds(), 100*r.shortest)
		})
}
