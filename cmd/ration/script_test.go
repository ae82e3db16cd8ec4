package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/pace"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ration": main, "stall": stall})
}

const secret = "a-secret-of-ann"

// Each file of testdata/script is a session at a terminal, with a Redis of its own. Nothing that is
// printed has a secret in it.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		server := redistest.Start(t)
		testscript.Run(t, testscript.Params{
			Files:         []string{file},
			UpdateScripts: *redraw,
			Setup: func(e *testscript.Env) error {
				listener, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
				if err != nil {
					return err
				}
				_, port, err := net.SplitHostPort(listener.Addr().String())
				if err := errors.Join(err, listener.Close()); err != nil {
					return err
				}
				e.Vars = append(e.Vars, "RATION_REDIS=redis://"+server.Addr+"/0", "NO_COLOR=1", "TZ=UTC", "PORT="+port)
				return nil
			},
		})
	}
}

// stall is a command of the scripts: a fleet that stands still. A wrong Retry-After has paused all for
// an hour, a token is quarantined, and so many callers wait. With "wait" it stays until the callers that
// wait are served, and prints how many.
func stall() {
	ctx := context.Background()
	client, err := openRedis(os.Getenv("RATION_REDIS"))
	must(err)
	queue, err := strconv.Atoi(os.Args[1])
	must(err)
	kept := &ration.RedisStore{Client: client}
	b := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(1000)}, Store: kept}
	ann, bob := ration.NewToken(secret), ration.NewToken("another-secret")
	ann.Label, bob.Label = "ann", "bob"
	pool := ration.NewPool(b, ann, bob)
	for range 10 {
		_, err := pool.Take(ctx, 1)
		must(err)
	}
	_, err = kept.Pause(ctx, store.PauseRequest{Budget: "api", For: time.Hour, Cause: fmt.Sprint(http.StatusTooManyRequests) + " " + http.StatusText(http.StatusTooManyRequests) + " from GET http://api.test/users, which asks for 1h0m0s"})
	must(err)
	_, err = kept.Quarantine(ctx, store.QuarantineRequest{Budget: "api", Token: bob.ID(), Reason: "dead_token", For: time.Hour, Cause: "401 Unauthorized from GET http://api.test/users"})
	must(err)
	served := make(chan error)
	for range queue {
		go func() {
			_, err := pool.Take(ctx, 1)
			served <- err
		}()
	}
	if len(os.Args) == 2 {
		// The callers have booked when all are booked ahead.
		for {
			d, err := kept.Describe(ctx, "api")
			must(err)
			ahead := 0
			for _, a := range d.Accounts {
				ahead += a.Limits[0].Ahead
			}
			if ahead == queue {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	for range queue {
		must(<-served)
	}
	fmt.Println("served", queue)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// No command shows a secret, whatever it is asked.
func TestNothingShowsASecret(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "the-password")
	url := "redis://:the-password@" + server.Addr + "/0"
	for _, args := range []string{
		"status -redis " + url, "status -json -redis " + url, "doctor -all -redis " + url, "doctor -redis redis://:the-passwor@" + server.Addr,
		"status -redis redis://:the-password@" + server.Addr + ":x/0", "status -redis redis://:the-password@" + server.Addr + "/99",
		"status -redis redis://:the-password@%zz", "pause api -for 1m -yes -redis " + url, "status -redis http://:the-password@h",
	} {
		_, out, errs := ask("", strings.Fields(args)...)
		require.NotContains(t, out+errs, "the-passwor", args)
	}
}

// An endpoint that is paused from the terminal holds back the fleet's requests to it, whatever the IDs in
// their paths, and no others.
func TestAnEndpointIsPaused(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer api.Close()
	budget := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(1000)}, MaxWait: time.Second, Store: &ration.RedisStore{Client: client}}
	token := ration.NewToken(secret)
	token.Label = "ann"
	caller := &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, token)}}
	get := func(path string) error {
		resp, err := caller.Get(api.URL + path)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	require.NoError(t, get("/users/7"))
	status, _, errs := ask("", "pause", "api", "ann", "-yes", "-for", "1h", "-endpoint", "get "+api.URL+"/users/8", "-redis", "redis://"+server.Addr)
	require.Zero(t, status, errs)
	var exhausted *ration.ExhaustedError
	require.ErrorAs(t, get("/users/9"), &exhausted)
	require.NoError(t, get("/pages/9"))

	// What is printed to end it ends that pause, and no other.
	status, _, errs = ask("", "pause", "api", "ann", "-yes", "-for", "1h", "-endpoint", "get "+api.URL+"/likes/8", "-redis", "redis://"+server.Addr)
	require.Zero(t, status, errs)
	_, out, _ := ask("", "status", "-redis", "redis://"+server.Addr)
	of := token.AccountID()[:6]
	require.Contains(t, out, "ration resume api "+of)
	status, out, errs = ask("", "resume", "api", "ann", "-yes", "-endpoint", "GET "+api.URL+"/users/8", "-redis", "redis://"+server.Addr)
	require.Zero(t, status, errs)
	require.Contains(t, out, "resumed: 1 pause of the endpoint\nnow: an endpoint of ann paused")
	require.Eventually(t, func() bool { return get("/users/9") == nil }, 10*time.Second, 10*time.Millisecond)
	require.ErrorAs(t, get("/likes/9"), &exhausted)
	status, _, errs = ask("", "resume", "api", "-yes", "-endpoint", "GET "+api.URL+"/users/8", "-redis", "redis://"+server.Addr)
	require.Equal(t, 1, status)
	require.Contains(t, errs, "no pause of that endpoint is in force")
	for _, bad := range []string{"GET /users", "GET http://", "G T http://h/", "no.key"} {
		status, _, errs = ask("", "pause", "api", "-yes", "-for", "1h", "-endpoint", bad, "-redis", "redis://"+server.Addr)
		require.Equal(t, 2, status, bad)
		require.Contains(t, errs, `write it as "GET https://api.test/users"`)
	}
}

// A pace is shown beside the limits, which stay as they were told, and as numbers.
func TestStatusSaysWhatPaceIsKeptTo(t *testing.T) {
	server := redistest.Start(t)
	kept := &ration.RedisStore{Client: server.Client(t)}
	limits := []ration.Limit{ration.PerMinute(6000)}
	accounts, err := store.NewAccounts(store.Account{ID: "a", Limits: limits})
	require.NoError(t, err)
	_, err = kept.Book(t.Context(), store.BookRequest{ID: store.NewBookingID(), Budget: "api", Accounts: accounts, Cost: 1})
	require.NoError(t, err)
	state := pace.State{Rate: 49, Burst: 40, Refusals: 4, Refused: time.Now().Add(-3 * time.Minute)}
	l, paced := state.Of(limits)
	require.True(t, paced)
	why := pace.Why{Origin: pace.Configuration, Pace: &state}
	_, err = kept.Card(t.Context(), store.CardRequest{Budget: "api", Account: "a", Limits: append(limits, l), Why: why.Text()})
	require.NoError(t, err)
	status, out, errs := ask("", "status", "api", "-redis", "redis://"+server.Addr)
	require.Zero(t, status, errs)
	require.Regexp(t, `6000/1m .* free, pace 2940/1m, burst 40: found 3m0?s? ago after 4 refusals`, out)
	require.NotContains(t, out, "gcra")
	_, out, _ = ask("", "status", "api", "-json", "-redis", "redis://"+server.Addr)
	require.Contains(t, out, `"limit": "2940/1m:gcra,burst=40"`)
	require.Contains(t, out, `"refusals": 4`)
	require.Contains(t, out, `"origin": "configuration"`)

	status, _, errs = ask("", "resume", "api", "a", "-yes", "-redis", "redis://"+server.Addr)
	require.Zero(t, status, errs)
	_, out, _ = ask("", "status", "api", "-json", "-redis", "redis://"+server.Addr)
	require.Contains(t, out, `"limit": "6000/1m"`)
	require.Contains(t, out, `"origin": "configuration"`)
	require.NotContains(t, out, `"pace"`)
}

// The limits that an operator has set are shown until a deployment replaces them, and of an account who gave its own.
func TestStatusSaysWhoGaveLimits(t *testing.T) {
	server := redistest.Start(t)
	kept := &ration.RedisStore{Client: server.Client(t)}
	shown := func(args ...string) string {
		status, out, errs := ask("", append([]string{"status", "api", "-redis", "redis://" + server.Addr}, args...)...)
		require.Zero(t, status, errs)
		return out
	}
	worker := func(revision, most int) *ration.Budget {
		b := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(most)}, Revision: revision, Store: kept}
		_, err := b.Try(t.Context(), ration.NewToken(secret), 1)
		require.NoError(t, err)
		return b
	}
	b := worker(0, 1000)
	require.NotContains(t, shown(), "limits set")
	require.Contains(t, shown("-json"), `"origin": "configuration"`)
	require.NoError(t, b.SetLimits(ration.PerHour(500), ration.PerSecond(9)))
	require.Regexp(t, ` ago by \S+, process \d+: 500/1h and 9/1s\n`, shown())
	worker(0, 1000)
	require.Contains(t, shown("-json"), `"origin": "operator"`)
	worker(1, 700)
	require.NotContains(t, shown(), "limits set")
	require.Contains(t, shown("-json"), `"origin": "configuration"`)
}

// What status prints where one endpoint refuses every account works as it stands: the fleet goes on with the others.
func TestThePrintedUndoOfAnEndpointWorks(t *testing.T) {
	server := redistest.Start(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasPrefix(req.URL.Path, "/likes/") {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer api.Close()
	var tokens []ration.Token
	for i := range 3 {
		tokens = append(tokens, ration.NewToken(fmt.Sprint(secret, i)))
	}
	var fleet []*http.Client
	for range 2 {
		budget := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(1000)}, MaxWait: time.Second, Store: &ration.RedisStore{Client: server.Client(t)}}
		fleet = append(fleet, &http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, tokens...)}})
	}
	get := func(path string) (served []error) {
		for _, caller := range fleet {
			resp, err := caller.Get(api.URL + path)
			if err == nil {
				resp.Body.Close()
			}
			served = append(served, err)
		}
		return served
	}
	get("/likes/100001") // which all accounts are refused
	for _, err := range get("/users/100001") {
		require.ErrorIs(t, err, ration.ErrExhausted)
	}

	_, out, _ := ask("", "status", "-redis", "redis://"+server.Addr)
	at := strings.Index(out, "ration resume api -except-endpoint '")
	require.Positive(t, at, out)
	endpoint, _, _ := strings.Cut(out[at+len("ration resume api -except-endpoint '"):], "'")
	status, said, errs := ask("", "resume", "api", "-yes", "-except-endpoint", endpoint, "-redis", "redis://"+server.Addr)
	require.Zero(t, status, errs)
	require.Contains(t, said, "resumed, but for the endpoint")
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(get("/users/100002"), func(err error) bool { return err != nil })
	}, 10*time.Second, 10*time.Millisecond)
	for _, err := range get("/likes/100002") {
		require.ErrorIs(t, err, ration.ErrExhausted)
	}
	_, out, _ = ask("", "status", "-redis", "redis://"+server.Addr)
	require.NotContains(t, out, "accounts are paused")

	status, _, errs = ask("", "resume", "api", "ann", "-yes", "-except-endpoint", endpoint, "-redis", "redis://"+server.Addr)
	require.Equal(t, 2, status)
	require.Contains(t, errs, "name no account")
	status, _, errs = ask("", "resume", "api", "-token", "x", "-yes", "-endpoint", endpoint, "-redis", "redis://"+server.Addr)
	require.Equal(t, 2, status)
	require.Contains(t, errs, "an endpoint or a token")
	// To resume an account leaves what is paused for all.
	_, err := (&ration.RedisStore{Client: server.Client(t)}).Resume(t.Context(), store.ResumeRequest{Budget: "api", Account: tokens[0].AccountID()})
	require.NoError(t, err)
	for _, err := range get("/likes/100003") {
		require.ErrorIs(t, err, ration.ErrExhausted)
	}
}

// A window that a success reports as spent is no pause to anybody: the account is spent until its reset, and there is nothing to undo.
func TestASpentWindowIsNoPause(t *testing.T) {
	server := redistest.Start(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit-Policy", `"default";q=100;w=600`)
		w.Header().Set("RateLimit", `"default";r=0;t=300`)
	}))
	defer api.Close()
	var told []ration.Event
	budget := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(1000)}, Store: &ration.RedisStore{Client: server.Client(t)},
		OnEvent: func(e ration.Event) { told = append(told, e) }}
	token := ration.NewToken(secret)
	token.Label = "ann"
	resp, err := (&http.Client{Transport: &ration.Transport{Pool: ration.NewPool(budget, token)}}).Get(api.URL)
	require.NoError(t, err)
	resp.Body.Close()
	usage, err := budget.Usage(t.Context(), token)
	require.NoError(t, err)
	require.InDelta(t, 300, usage.PausedUntil.Sub(usage.Now).Seconds(), 2, "its callers wait")
	for _, e := range told {
		require.NotEqual(t, ration.Paused, e.Kind)
	}
	_, out, _ := ask("", "status", "-redis", "redis://"+server.Addr)
	require.Contains(t, out, "spent")
	require.NotContains(t, out, "paused")
	require.NotContains(t, out, "ration resume")
}

// A token that is resumed is tried by one request of the fleet, which the others wait for.
func TestAResumedTokenIsTriedByOneRequest(t *testing.T) {
	server := redistest.Start(t)
	var dead, works atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") == "Bearer revoked" && works.Load() == 0 {
			dead.Add(1)
			time.Sleep(50 * time.Millisecond) // in which others could come
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error": {"message": "invalid token"}}`))
		}
	}))
	defer api.Close()
	revoked := ration.NewToken("revoked")
	pool := func() *ration.Pool {
		budget := &ration.Budget{Name: "api", Limits: []ration.Limit{ration.PerHour(1000)}, Store: &ration.RedisStore{Client: server.Client(t)}}
		return ration.NewPool(budget, revoked, ration.NewToken("good"))
	}
	fleet := []*http.Client{{Transport: &ration.Transport{Pool: pool()}}, {Transport: &ration.Transport{Pool: pool()}}}
	crowd := func() {
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				resp, err := fleet[i%2].Get(api.URL)
				if err == nil {
					resp.Body.Close()
				}
			})
		}
		all.Wait()
	}
	quarantined := func() bool {
		_, out, _ := ask("", "status", "-redis", "redis://"+server.Addr)
		return strings.Contains(out, "ration resume api -token")
	}
	for !quarantined() {
		crowd()
	}
	before := dead.Load()
	status, out, errs := ask("", "resume", "api", "-yes", "-token", revoked.ID(), "-redis", "redis://"+server.Addr)
	require.Zero(t, status, errs)
	require.Contains(t, out, ", tried again now\n")
	require.Eventually(t, func() bool { crowd(); return dead.Load() > before }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, before+1, dead.Load())

	works.Store(1)
	status, _, errs = ask("", "resume", "api", "-yes", "-token", revoked.ID(), "-redis", "redis://"+server.Addr)
	require.Zero(t, status, errs)
	require.Eventually(t, func() bool { crowd(); return !quarantined() }, 10*time.Second, 10*time.Millisecond)
}
