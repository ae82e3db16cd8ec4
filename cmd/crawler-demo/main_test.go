package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/internal/testkit/simulated"
)

// asCommand makes the test binary be the command, so that a process to be
// interrupted or killed needs no build of its own.
const asCommand = "CRAWLER_DEMO_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 2 && os.Args[1] == workerArg, os.Getenv(asCommand) != "":
		main()
	default:
		logging.Disable()
		redistest.Main(m)
	}
}

// run runs the command in this process, and its fleet in processes of their own.
func run(t *testing.T, a *app, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs testkit.Buffer
	a.stdout, a.stderr, a.newProcess = &out, &errs, thisProgram
	if a.stdin == nil {
		a.stdin = strings.NewReader("")
	}
	if a.grace == 0 {
		a.grace = 10 * time.Second
	}
	if a.listen == nil {
		a.listen = listenLoopback
	}
	status = a.exec(t.Context(), args)
	return status, out.String(), errs.String()
}

// A process is the command in a process of its own.
type process struct {
	*exec.Cmd
	stdout, stderr testkit.Buffer
	ended          chan error // when its children have ended too
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], args...), ended: make(chan error, 1)}
	p.Env = append(os.Environ(), asCommand+"=1")
	// The children hold the write end of stderr too, so its end is theirs.
	p.Cmd.Stdout, p.Cmd.Stderr = &p.stdout, &p.stderr
	require.NoError(t, p.Start())
	go func() { p.ended <- p.Wait() }()
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// status waits for the end.
func (p *process) status(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.ProcessState.ExitCode()
	case <-time.After(20 * time.Second):
		require.Fail(t, "the command does not end", p.stderr.String())
		return 0
	}
}

// until polls for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 20*time.Second, 5*time.Millisecond, what)
}

// A site is a simulated provider with the files that a crawl of it needs.
type site struct {
	provider *simulated.Provider
	base     string
	urls     string
	tokens   string
	out      string
	secrets  []string
}

func newSite(t *testing.T, provider *simulated.Provider) *site {
	t.Helper()
	s := &site{provider: provider, secrets: []string{"the-first-secret", "the-second-secret"}}
	provider.Tokens = s.secrets
	provider.PageSize = 5
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	s.base = server.URL
	dir := t.TempDir()
	s.urls, s.tokens, s.out = filepath.Join(dir, "urls"), filepath.Join(dir, "tokens"), filepath.Join(dir, "out.jsonl")
	write(t, s.urls, strings.Join(provider.StartURLs(server.URL), "\n"))
	write(t, s.tokens, strings.Join(s.secrets, "\n")+"\n")
	return s
}

// args are those of a crawl of the site.
func (s *site) args(more ...string) []string {
	return append([]string{"-urls", s.urls, "-tokens", s.tokens, "-out", s.out, "-follow", "paging.next"}, more...)
}

// lines is the number of whole lines in the -out file.
func (s *site) lines() int {
	data, _ := os.ReadFile(s.out)
	return bytes.Count(data, []byte("\n"))
}

// requireWhole requires that every page is in the -out file once, and no secret
// in any file.
func (s *site) requireWhole(t *testing.T) {
	t.Helper()
	data, err := os.ReadFile(s.out)
	require.NoError(t, err)
	s.requireNoSecret(t, string(data))
	var got []string
	for line := range strings.Lines(string(data)) {
		r, ours := parseRecord([]byte(line))
		require.True(t, ours, line)
		got = append(got, r.URL)
	}
	slices.Sort(got)
	require.Equal(t, s.pages(t), got)
}

// pages are all the provider's, found without the command.
func (s *site) pages(t *testing.T) (all []string) {
	t.Helper()
	same := &simulated.Provider{Users: s.provider.Users, PagesPerUser: s.provider.PagesPerUser, PageSize: s.provider.PageSize}
	for _, u := range s.provider.StartURLs(s.base) {
		for u != "" {
			all = append(all, u)
			r := httptest.NewRequest("GET", u, nil)
			r.Header.Set("Authorization", "Bearer any")
			w := httptest.NewRecorder()
			same.ServeHTTP(w, r)
			u, _ = follower{"paging", "next"}.next(r.URL, nil, w.Body.Bytes())
		}
	}
	require.Len(t, all, same.Calls())
	slices.Sort(all)
	return all
}

func (s *site) requireNoSecret(t *testing.T, text string) {
	t.Helper()
	for _, secret := range s.secrets {
		require.NotContains(t, text, secret)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func parseSummary(t *testing.T, stdout string) summary {
	t.Helper()
	var s summary
	require.NoError(t, json.Unmarshal([]byte(stdout), &s), stdout)
	return s
}

func TestHelpNamesEveryFlagAndIsNoError(t *testing.T) {
	status, stdout, stderr := run(t, new(app), "-h")
	require.Zero(t, status)
	require.Empty(t, stderr)
	for _, name := range []string{"urls", "provider", "tokens", "limit", "auth", "follow", "max", "redis", "budget", "processes",
		"workers", "out", "plot", "json"} {
		require.Contains(t, stdout, "  -"+name+" ")
	}
}
