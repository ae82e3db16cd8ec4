package ration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/instagram"
	"github.com/ration-go/ration/internal/redistest"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// A fleetOrder tells one process of a fleet what to crawl.
type fleetOrder struct {
	Redis    string
	Budget   string
	Tokens   []string
	Limit    int
	Window   time.Duration
	URL      string
	Workers  int
	Duration time.Duration
}

// fleetEnv makes the test binary one process of a fleet.
const fleetEnv = "RATION_FLEET_PROCESS"

// crawlAsFleet calls the URL again and again until the duration is over, and
// prints how many calls each worker made. The order comes on standard input.
func crawlAsFleet(in io.Reader, out io.Writer) error {
	var order fleetOrder
	if err := json.NewDecoder(in).Decode(&order); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: order.Redis})
	defer client.Close()
	budget := &ration.Budget{
		Name:   order.Budget,
		Limits: []ration.Limit{{Max: order.Limit, Window: order.Window}},
		Store:  &ration.RedisStore{Client: client},
	}
	pool := ration.NewPool(budget)
	for _, secret := range order.Tokens {
		pool.Add(ration.NewToken(secret))
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = order.Workers
	crawler := &http.Client{Transport: &ration.Transport{Base: base, Pool: pool}}
	ctx, stop := context.WithTimeout(context.Background(), order.Duration)
	defer stop()

	calls, errs := make([]int, order.Workers), make([]error, order.Workers)
	var wait sync.WaitGroup
	for i := range order.Workers {
		wait.Go(func() {
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, order.URL, nil)
				if err != nil {
					errs[i] = err
					return
				}
				resp, err := crawler.Do(req)
				if errors.Is(err, ration.ErrExhausted) || errors.Is(err, context.DeadlineExceeded) {
					return // the next slot is after the end
				}
				if err != nil {
					errs[i] = err
					return
				}
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err == nil && resp.StatusCode == http.StatusOK {
					calls[i]++
				}
			}
		})
	}
	wait.Wait()
	return errors.Join(errors.Join(errs...), json.NewEncoder(out).Encode(calls))
}

// runFleet runs processes of the test binary and returns the calls of each
// worker. Once they run, disturb is called with them.
func runFleet(t *testing.T, order fleetOrder, processes int, disturb func([]*exec.Cmd)) []int {
	t.Helper()
	input, err := json.Marshal(order)
	require.NoError(t, err)
	var cmds []*exec.Cmd
	var outputs []io.Reader
	for range processes {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fleetEnv+"=1")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = in.Write(input)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		cmds, outputs = append(cmds, cmd), append(outputs, out)
	}
	disturb(cmds)
	var calls []int
	for i, cmd := range cmds {
		var own []int
		require.NoError(t, json.NewDecoder(outputs[i]).Decode(&own))
		require.NoError(t, cmd.Wait())
		calls = append(calls, own...)
	}
	return calls
}

// A fleet has four processes of 16 workers, three tokens and one Redis. Its judge
// is the provider, which keeps an exact log of its own.
func TestAFleetUsesItsQuotaAndIsNeverRefused(t *testing.T) {
	for name, disturb := range map[string]func([]*exec.Cmd){
		"undisturbed": func([]*exec.Cmd) {},
		"one process is stopped for a while": func(cmds []*exec.Cmd) {
			pause := time.NewTicker(1500 * time.Millisecond)
			defer pause.Stop()
			for range 2 {
				<-pause.C
				_ = cmds[0].Process.Signal(syscall.SIGSTOP)
				<-pause.C
				_ = cmds[0].Process.Signal(syscall.SIGCONT)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			tokens := []string{"secret-one", "secret-two", "secret-three"}
			provider := &instagram.Provider{Limit: 300, Window: 10 * time.Second, Tokens: tokens,
				Latency: func() time.Duration { return 20 * time.Millisecond }}
			site := httptest.NewServer(provider)
			defer site.Close()
			order := fleetOrder{
				Redis: server.Addr, Budget: redistest.Name(t), Tokens: tokens,
				Limit: provider.Limit, Window: provider.Window,
				URL: provider.StartURLs(site.URL)[0], Workers: 16, Duration: 22 * time.Second,
			}
			before := server.Commands(t)
			calls := runFleet(t, order, 4, disturb)
			commands := server.Commands(t) - before

			report := provider.Report()
			require.Zero(t, report.Refused)
			allowed, sum := 0, 0
			for _, token := range report.Tokens {
				span := token.Last.Sub(token.First)
				allowed += provider.Limit * (int(span/provider.Window) + 1)
				require.LessOrEqual(t, token.MaxInWindow, provider.Limit)
			}
			for _, n := range calls {
				sum += n
			}
			require.Equal(t, report.Accepted, sum)
			require.GreaterOrEqual(t, float64(report.Accepted), 0.98*float64(allowed))
			require.GreaterOrEqual(t, report.Accepted, 3*3*provider.Limit*98/100, "three windows of three tokens")
			t.Logf("%d calls of %d, %.3f commands a call, fairness %.3f", sum, allowed, float64(commands)/float64(sum), jain(calls))
			if name == "undisturbed" {
				require.LessOrEqual(t, float64(commands), 1.1*float64(sum))
				require.GreaterOrEqual(t, jain(calls), 0.98)
			}
		})
	}
}

// jain is Jain's fairness index: 1 if all have the same, 1/n if one has all.
func jain(shares []int) float64 {
	sum, squares := 0.0, 0.0
	for _, n := range shares {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// asFleetProcess runs the binary as one process of a fleet if it was started so.
func asFleetProcess() {
	if os.Getenv(fleetEnv) == "" {
		return
	}
	if err := crawlAsFleet(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
