package dashboard

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ration-go/ration/internal/testkit/redistest"
)

var screenshots = flag.String("screenshots", "", "a directory for pictures of the page")

func TestMain(m *testing.M) { redistest.Main(m) }

// A browser is a real one, whose windows complain about nothing.
type browser struct {
	ctx context.Context

	mu         sync.Mutex // protects complaints
	complaints []string
}

// start starts a browser, or skips the test.
func start(t *testing.T) *browser {
	t.Helper()
	found := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			found = path
			break
		}
	}
	if found == "" {
		t.Skip("no browser: apt-get install chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(found), chromedp.NoSandbox, chromedp.WindowSize(1100, 800))
	for try := 1; ; try++ {
		allocated, stop := chromedp.NewExecAllocator(t.Context(), options...)
		ctx, closeAll := chromedp.NewContext(allocated)
		err := chromedp.Run(ctx)
		if err == nil {
			t.Cleanup(stop)
			t.Cleanup(closeAll)
			return &browser{ctx: ctx}
		}
		closeAll()
		stop()
		if try == 3 {
			require.NoError(t, err)
		}
		t.Logf("the browser did not start, attempt %d of 3: %v", try, err) // a browser in a container sometimes dies as it starts
	}
}

// A window shows one page.
type window struct {
	*browser
	t     *testing.T
	ctx   context.Context
	close func()
}

// open opens a window at an address.
func (b *browser) open(t *testing.T, address string) *window {
	t.Helper()
	ctx, stop := chromedp.NewContext(b.ctx)
	t.Cleanup(stop)
	w := &window{b, t, ctx, stop}
	chromedp.ListenTarget(ctx, func(event any) {
		complaint := ""
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			complaint = e.ExceptionDetails.Error()
		case *runtime.EventConsoleAPICalled:
			complaint = fmt.Sprintf("%s: %v", e.Type, e.Args)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
				complaint = e.Entry.Text + " " + e.Entry.URL
			}
		}
		if complaint != "" {
			b.mu.Lock()
			b.complaints = append(b.complaints, complaint)
			b.mu.Unlock()
		}
	})
	require.NoError(t, chromedp.Run(ctx)) // a window lives as long as the context of its first call
	w.run(log.Enable(), chromedp.Navigate(address), chromedp.WaitReady("main"))
	return w
}

// requireNoComplaint demands that no console has an error.
func (b *browser) requireNoComplaint(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.complaints)
}

func (w *window) run(actions ...chromedp.Action) {
	w.t.Helper()
	ctx, stop := context.WithTimeout(w.ctx, 20*time.Second)
	defer stop()
	require.NoError(w.t, chromedp.Run(ctx, actions...))
}

// text returns what a person reads in the main part.
func (w *window) text() (text string) {
	w.t.Helper()
	w.run(chromedp.Evaluate(`document.getElementById("main").innerText`, &text))
	return text
}

// evaluate returns what a script does.
func evaluate[T any](w *window, script string) (value T) {
	w.t.Helper()
	w.run(chromedp.Evaluate(script, &value))
	return value
}

// picture writes a picture of the window as it is shown on a screen of that size.
func (w *window) picture(name string, width, height int64, dark bool) {
	w.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	w.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
		chromedp.EmulateViewport(width, height), chromedp.Sleep(100*time.Millisecond))
	require.LessOrEqual(w.t, evaluate[float64](w, `document.documentElement.scrollWidth - document.documentElement.clientWidth`), 0.0, "%s: the page is wider than the screen", name)
	if *screenshots == "" {
		return
	}
	var image []byte
	w.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		image, err = page.CaptureScreenshot().WithFormat(page.CaptureScreenshotFormatPng).Do(ctx)
		return err
	}))
	require.NoError(w.t, os.MkdirAll(*screenshots, 0o755))
	require.NoError(w.t, os.WriteFile(filepath.Join(*screenshots, name+".png"), image, 0o644))
}

// axe returns the source of axe-core, or skips the test.
func axe(t *testing.T) string {
	t.Helper()
	const of = "axe-core@4.14.1"
	dir := t.TempDir()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, "npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", dir, of)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("npm did not fetch %s: %v %s", of, err, out)
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	require.NoError(t, err)
	return string(source)
}

// requireAccessible demands that axe-core finds nothing wrong.
func (w *window) requireAccessible(source string) {
	w.t.Helper()
	w.run(chromedp.Evaluate(source+";0", nil))
	var found string
	w.run(chromedp.Evaluate(`axe.run().then(r => JSON.stringify(r.violations.map(v => [v.id, v.help, v.nodes.map(n => n.html)])))`, &found,
		func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	var violations []any
	require.NoError(w.t, json.Unmarshal([]byte(found), &violations))
	require.Empty(w.t, violations, "%s", found)
}
