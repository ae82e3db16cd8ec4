package pages_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit"
	"github.com/ration-go/ration/internal/testkit/redistest"
	"github.com/ration-go/ration/store"
)

// The blocks of these pages are run, in order:
//
//   - sh: by bash, on a Redis of the page's own in place of localhost:6379. The module is the one of this
//     tree, whatever version is named.
//   - go, a whole file: package main is built, a test is run, all else is built.
//   - go, a fragment: in a main function, in which testdata/page.go has declared what it uses, and the
//     fragments before it what they declare. Requests are answered in the process.
//   - json, http and others: written to a file, or not used.
//
// A comment above a block says what else is done with it:
//
//	run: skip, REASON      nothing
//	released: COMMANDS     those are run in its place, if they run something: TestInstallCommandsRunAsPasted runs the block
//	run: file NAME         it is written to that file, for the blocks that follow
//	run: background NAME   it goes on until the page ends, or until "run: kill NAME"
//	run: ask BUDGET        each line is run by itself, with -yes, on a fleet that is paused
//	shows                  the commands before printed these lines, among others: numbers may differ
//	shows: NAME            likewise what runs in the background
//	code: FILE             the file has these lines
func TestBlocksOfThePagesRun(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	tools := build(t, "./cmd/ration")
	for _, page := range pages(t) {
		if page != "README.md" && page != "docs/tutorial.md" && page != "docs/proxy.md" && !strings.HasPrefix(page, "docs/howto/") && !strings.HasPrefix(page, "docs/explanation/") {
			continue
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			r := newPageRun(t, page, tools)
			for _, b := range blocks(read(t, page)) {
				r.step(b)
			}
			r.runFragments()
		})
	}
}

// build returns a folder with the commands of this tree.
func build(t *testing.T, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build", "-o", dir + "/"}, packages...)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// A pageRun is the machine of somebody who follows a page.
type pageRun struct {
	*testing.T
	page      string
	dir       string
	env       []string
	addr      string // of the page's Redis
	store     *ration.RedisStore
	fragments []block
	programs  int

	again      block  // the last commands
	output     string // of them
	background map[string]*process
}

func newPageRun(t *testing.T, page, tools string) *pageRun {
	t.Helper()
	r := &pageRun{T: t, page: page, dir: t.TempDir(), background: make(map[string]*process)}
	if strings.Contains(read(t, page), "run: background redis") {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		r.addr = listener.Addr().String()
		require.NoError(t, listener.Close())
	} else {
		server := redistest.Start(t)
		r.addr = server.Addr
		r.store = &ration.RedisStore{Client: server.Client(t)}
	}
	tree, err := filepath.Abs(root)
	require.NoError(t, err)
	work, err := os.ReadFile(filepath.Join(tree, "go.work"))
	require.NoError(t, err)
	r.write("go.mod", "module page\n\ngo 1.26.0\n")
	r.write("go.work", strings.NewReplacer("\t./", "\t"+tree+"/", "\t.\n", "\t"+tree+"\n\t.\n").Replace(string(work)))
	sums, err := os.ReadFile(filepath.Join(tree, "go.work.sum"))
	require.NoError(t, err)
	r.write("go.work.sum", string(sums))
	r.env = append(os.Environ(), "GOWORK="+filepath.Join(r.dir, "go.work"), "GOFLAGS=", "PATH="+tools+":"+os.Getenv("PATH"),
		"RATION_REDIS=redis://"+r.addr+"/0", "GOBIN="+filepath.Join(r.dir, "bin"), "GITHUB_TOKENS=a-secret,b-secret")
	return r
}

func (r *pageRun) write(name, text string) {
	require.NoError(r, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644))
}

// here returns the text with the page's Redis in place of the reader's.
func (r *pageRun) here(text string) string {
	_, port, _ := net.SplitHostPort(r.addr)
	return strings.ReplaceAll(strings.ReplaceAll(text, "localhost:6379", r.addr), "6379", port)
}

// step does what a reader does with a block.
func (r *pageRun) step(b block) {
	kind, what, _ := strings.Cut(b.mark, " ")
	verb, what, _ := strings.Cut(what, " ")
	switch {
	case kind == "shows" || kind == "shows:":
		r.demand(b, verb)
	case kind == "code:":
		require.Contains(r, unindented(read(r.T, verb)), unindented(b.text), "%s:%d is not what %s has", r.page, b.line, verb)
	case kind == "released:":
		if verb == "go" && strings.HasPrefix(what, "run ") {
			b.mark, b.text = "", strings.ReplaceAll(strings.TrimPrefix(b.mark, "released: "), "; ", "\n")+"\n"
			r.step(b)
		}
	case kind == "run:" && verb == "skip,":
		require.NotEmpty(r, what, "%s:%d: why?", r.page, b.line)
	case kind == "run:" && verb == "file":
		r.write(what, r.here(b.text))
	case kind == "run:" && verb == "kill":
		require.Contains(r, r.background, what)
		r.background[what].kill()
	case kind == "run:" && verb == "background":
		r.runFragments()
		r.begin(what, b)
	case kind == "run:" && verb == "ask":
		for line := range strings.Lines(b.text) {
			r.pauseAll(what)
			command, _, _ := strings.Cut(line, " #")
			r.shell(block{b.line, "sh", strings.TrimSpace(command) + " -yes", ""})
		}
	case kind == "run:":
		r.Fatalf("%s:%d: nobody knows %q", r.page, b.line, b.mark)
	case b.language == "sh":
		r.runFragments()
		r.shell(b)
	case b.language == "go" && !regexp.MustCompile(`(?m)^package `).MatchString(b.text):
		r.fragments = append(r.fragments, b)
	case b.language == "go":
		r.runFile(b)
	}
}

func unindented(text string) string {
	return regexp.MustCompile(`(?m)^[ \t]+|// Output:.*`).ReplaceAllString(text, "")
}

// prelude has bash run the go command on this tree: it has neither versions nor a network.
const prelude = `set -euo pipefail
go() {
	case "$*" in
	"mod tidy") ;;
	"get "*) command go list "${2%@*}" >&2 ;;
	"install "* | "run "*"@latest") command go "$1" "${2%@*}" ;;
	*) command go "$@" ;;
	esac
}
`

// shell runs commands, and demands that they do what they are for.
func (r *pageRun) shell(b block) {
	ctx, stop := context.WithTimeout(r.Context(), 2*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "bash", "-c", prelude+r.here(b.text))
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	require.NoError(r, err, "%s:%d: %s%s", r.page, b.line, b.text, out)
	r.again, r.output = b, string(out)
}

// demand demands that the lines of a block were printed, in this order.
func (r *pageRun) demand(b block, name string) {
	printed := func() string {
		if name == "" {
			return r.output
		}
		require.Contains(r, r.background, name)
		return r.background[name].output.String()
	}
	ends := time.Now().Add(20 * time.Second)
	for {
		rest := shape(printed())
		missing := ""
		for line := range strings.Lines(shape(b.text)) {
			at := strings.Index(rest, line)
			if at < 0 {
				missing = line
				break
			}
			rest = rest[at+len(line):]
		}
		if missing == "" {
			return
		}
		require.True(r, time.Now().Before(ends), "%s:%d shows a line that was not printed: %q\n%s", r.page, b.line, missing, printed())
		time.Sleep(100 * time.Millisecond)
		if name == "" {
			r.shell(r.again)
		}
	}
}

var (
	quantity = regexp.MustCompile(`[0-9]+(\.[0-9]+)?((ms|µs|s|m|h)\b|([0-9.]+(ms|s|m|h))+)?`)
	spaces   = regexp.MustCompile(`[ \t]+`)
)

// shape returns text in which all numbers and times are alike, and columns as wide.
func shape(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(spaces.ReplaceAllString(quantity.ReplaceAllString(line, "N"), " "))
		if line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// pauseAll makes a fleet that the commands of an operator can change: account ann, paused, and a quarantined token.
func (r *pageRun) pauseAll(name string) {
	token := ration.NewToken("a-secret")
	token.Label = "ann"
	budget := &ration.Budget{Name: name, Limits: []ration.Limit{ration.PerHour(1000)}, Store: r.store}
	require.NoError(r, budget.ResumeAll(r.Context()))
	_, err := budget.Wait(r.Context(), token, 1)
	require.NoError(r, err)
	_, err = budget.Pause(r.Context(), token, time.Hour)
	require.NoError(r, err)
	_, err = r.store.Quarantine(r.Context(), store.QuarantineRequest{Budget: name, Token: "8112f50000000000", Reason: "dead_token", For: time.Hour})
	require.NoError(r, err)
}

// runFile compiles a file, and runs it if it is a test.
func (r *pageRun) runFile(b block) {
	r.programs++
	dir := fmt.Sprint("file", r.programs)
	require.NoError(r, os.Mkdir(filepath.Join(r.dir, dir), 0o755))
	name, command := "file.go", "go build -o /dev/null ./"+dir
	if strings.Contains(b.text, "_test\n") {
		name, command = "file_test.go", "go test -count 1 ./"+dir
	}
	r.write(filepath.Join(dir, name), r.here(b.text))
	r.shell(block{b.line, "sh", command, ""})
}

// runFragments runs the fragments of Go that have not been run.
func (r *pageRun) runFragments() {
	if len(r.fragments) == 0 {
		return
	}
	r.programs++
	dir := fmt.Sprint("fragments", r.programs)
	require.NoError(r, os.Mkdir(filepath.Join(r.dir, dir), 0o755))
	program, lines := fragmentProgram(r.fragments)
	world, err := os.ReadFile("testdata/page.go")
	require.NoError(r, err)
	r.write(filepath.Join(dir, "page.go"), r.here(string(world)))
	r.write(filepath.Join(dir, "main.go"), r.here(program))
	r.fragments = nil
	r.shell(block{lines, "sh", "go run ./" + dir, ""})
}

// imported are the packages that fragments use without an import.
var imported = []string{"context", "errors", "fmt", "log", "log/slog", "net/http", "os", "slices", "strings", "time",
	"github.com/prometheus/client_golang/prometheus", "github.com/redis/go-redis/v9",
	"github.com/ration-go/ration", "github.com/ration-go/ration/dashboard", "github.com/ration-go/ration/provider",
	"github.com/ration-go/ration/provider/presets", "github.com/ration-go/ration/rationotel",
	"github.com/ration-go/ration/rationprom", "github.com/ration-go/ration/rationtrace"}

// fragmentProgram returns a program of the fragments, each in the scope of those before it.
func fragmentProgram(fragments []block) (program string, line int) {
	var body strings.Builder
	declared := regexp.MustCompile(`(?m)^(\w+(?:, \w+)*) := `)
	for _, b := range fragments {
		fmt.Fprintf(&body, "{\n%s\n", b.text)
		for _, names := range declared.FindAllStringSubmatch(b.text, -1) {
			for name := range strings.SplitSeq(names[1], ", ") {
				if name != "_" {
					fmt.Fprintf(&body, "_ = %s\n", name)
				}
			}
		}
	}
	body.WriteString(strings.Repeat("}\n", len(fragments)))
	used := regexp.MustCompile(`//.*|"[^"\n]*"`).ReplaceAllString(body.String(), "")
	var imports strings.Builder
	for _, path := range imported {
		name := strings.TrimSuffix(path, "/v9")
		name = strings.TrimPrefix(name[strings.LastIndex(name, "/")+1:], "go-")
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(used) {
			fmt.Fprintf(&imports, "%s %q\n", name, path)
		}
	}
	return fmt.Sprintf("package main\n\nimport (\n%s)\n\nfunc main() {\n%s}\n", imports.String(), body.String()), fragments[0].line
}

// A process goes on while the page is read further.
type process struct {
	cmd    *exec.Cmd
	output *testkit.Buffer
	ended  chan struct{}
}

// begin starts commands that go on.
func (r *pageRun) begin(name string, b block) {
	p := &process{cmd: exec.Command("bash", "-c", prelude+r.here(b.text)), output: new(testkit.Buffer), ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = r.dir, r.env, p.output, p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(r, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	r.Cleanup(p.kill)
	r.background[name] = p
	if name == "redis" {
		require.Eventually(r, func() bool {
			conn, err := net.Dial("tcp", r.addr)
			if err == nil {
				_ = conn.Close()
			}
			return err == nil
		}, 20*time.Second, 20*time.Millisecond, "%s", p.output)
	}
}

func (p *process) kill() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// The tutorial's two programs share one quota: each prints a page a second while both run, and two when the other is gone.
func TestTheTutorialsProgramsShareTheQuota(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const page = "docs/tutorial.md"
	r := newPageRun(t, page, t.TempDir())
	for _, b := range blocks(read(t, page)) {
		switch b.mark {
		case "run: background redis", "run: file main.go":
			r.step(b)
		}
	}
	r.shell(block{0, "sh", "go build -o crawl main.go", ""})
	both := []string{"one", "two"}
	for _, name := range both {
		r.begin(name, block{0, "sh", "exec ./crawl", ""})
	}
	printed := func(name string) int { return strings.Count(r.background[name].output.String(), "200 OK") }
	require.Eventually(t, func() bool { return slices.IndexFunc(both, func(name string) bool { return printed(name) == 0 }) < 0 }, 20*time.Second, time.Millisecond)
	const span = 5 * time.Second
	begun := []int{printed("one"), printed("two")}
	time.Sleep(span) // what is looked at is what leaves meanwhile
	one, two := printed("one")-begun[0], printed("two")-begun[1]
	require.InDelta(t, span.Seconds(), one, 2, "pages of one, %d of two", two)
	require.InDelta(t, span.Seconds(), two, 2, "pages of two, %d of one", one)
	r.background["two"].kill()
	before := printed("one")
	require.Eventually(t, func() bool { return printed("one")-before >= 10 }, 15*time.Second, 10*time.Millisecond,
		"one goes on alone with two pages a second, at the latest 5 s later")
}
