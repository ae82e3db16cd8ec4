package shown_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
)

// A fleet is six processes that crawl two services of an api, with the tools that people look at it by.
type fleet struct {
	api   *api
	redis *redistest.Server
	url   string // of the api
	tool  string // the program ration
	page  string // the address of ration serve

	crawler string // the program
	workers []*worker
}

// A worker is a process of the fleet.
type worker struct {
	cmd *exec.Cmd
	in  io.Closer
	log testkit.Buffer
}

// A given is what a process is told of a budget.
type given struct {
	Name, Limit string
	Revision    int
	Tokens      []string
	Callers     int
	Paths       []string
}

const (
	processes     = 6
	callersOfEach = 16 // of each budget
)

// services are what the two budgets spend: their accounts, the calls of each in a window, and the first words of their paths.
var services = map[string]struct {
	accounts, most int
	paths          []string
}{
	"shop":   {25, 30, []string{"items", "prices", "reviews"}},
	"search": {15, 20, []string{"search"}},
}

// programs builds the tools of a test, once.
var programs = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "shown"); err != nil {
		return "", err
	}
	for folder, of := range map[string]string{".": "./crawler", "../../cmd": "./ration"} {
		build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), of)
		build.Dir = folder
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
	}
	return dir, nil
})

// startFleet starts one, whose processes are told what usually is.
func startFleet(t *testing.T) *fleet {
	t.Helper()
	dir, err := programs()
	require.NoError(t, err)
	f := &fleet{api: newAPI(), redis: redistest.Start(t), tool: filepath.Join(dir, "ration"), crawler: filepath.Join(dir, "crawler")}
	server := httptest.NewServer(f.api)
	t.Cleanup(server.Close)
	f.url = server.URL
	f.serve(t)
	for range processes {
		f.start(t, func(*given) {})
	}
	return f
}

// serve starts ration serve.
func (f *fleet) serve(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), f.tool, "serve", "-redis", f.redis.Addr, "-listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	f.page = strings.TrimRight(address, "/\n")
}

// start starts a process, for which what it is told of each budget is changed.
func (f *fleet) start(t *testing.T, change func(*given)) *worker {
	t.Helper()
	var budgets []given
	for name, s := range services {
		g := given{Name: name, Limit: fmt.Sprintf("%d/%s", s.most, apiWindow), Callers: callersOfEach}
		for i := range s.accounts {
			g.Tokens = append(g.Tokens, fmt.Sprintf("secret-%s%02d", name, i))
		}
		for _, path := range s.paths {
			g.Paths = append(g.Paths, "/"+path+"/")
		}
		change(&g)
		budgets = append(budgets, g)
	}
	w := &worker{cmd: exec.CommandContext(t.Context(), f.crawler)}
	w.cmd.Stderr = &w.log
	in, err := w.cmd.StdinPipe()
	require.NoError(t, err)
	w.in = in
	require.NoError(t, w.cmd.Start())
	require.NoError(t, json.NewEncoder(in).Encode(map[string]any{"URL": f.url, "Redis": f.redis.Addr, "Budgets": budgets}))
	t.Cleanup(func() {
		_ = in.Close()
		_ = w.cmd.Wait()
	})
	f.workers = append(f.workers, w)
	return w
}

// end has a process end as it does when its work is done.
func (f *fleet) end(t *testing.T, w *worker) {
	t.Helper()
	require.NoError(t, w.in.Close())
	require.NoError(t, w.cmd.Wait())
	f.workers = slices.DeleteFunc(f.workers, func(one *worker) bool { return one == w })
}

// run has the tool do something.
func (f *fleet) run(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), f.tool, append(args, "-redis", f.redis.Addr)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
