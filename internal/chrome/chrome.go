// Package chrome reads our pages in a real browser, for tests: Debian's chromium, driven by its protocol.
package chrome

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Tab is a page in a real browser. It fails its test for errors on the console and for requests that leave the page.
type Tab struct {
	t    *testing.T
	ctx  context.Context
	home string // what every request has to begin with

	mu       sync.Mutex
	problems []string
}

// Start starts Debian's chromium. BRIDGECHECK_BROWSER=required makes its absence a failure, as CI wants it.
func Start(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("BRIDGECHECK_BROWSER") == "required" {
			t.Fatal("chromium is not installed, and BRIDGECHECK_BROWSER=required asks for it")
		}
		t.Skip("SKIPPED: report.html is NOT tested in a browser, for chromium is not installed (apt-get install chromium)")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Headless,
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "hide-scrollbars"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		cancel()
		cancelAllocator()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

// Open shows a file at a width and waits till it is loaded.
func Open(t *testing.T, parent context.Context, address string, width, height int64) *Tab {
	t.Helper()
	return open(t, parent, address, strings.SplitN(address, "#", 2)[0], width, height)
}

// OpenAnywhere is Open for a page that leads to other servers of this machine, as a login does.
func OpenAnywhere(t *testing.T, parent context.Context, address string, width, height int64) *Tab {
	t.Helper()
	return open(t, parent, address, "http://127.0.0.1:", width, height)
}

func open(t *testing.T, parent context.Context, address, home string, width, height int64) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent)
	b := &Tab{t: t, ctx: ctx, home: home}
	t.Cleanup(func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, p := range b.problems {
			t.Error(p)
		}
	})
	b.Run() // the tab is there now: no event is missed
	ctx, cancelTime := context.WithTimeout(ctx, 30*time.Second)
	t.Cleanup(cancelTime)
	b.ctx = ctx
	if err := chromedp.Listen(ctx, b.watch); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	b.Run(chromedp.EmulateViewport(width, height), chromedp.Navigate(address))
	return b
}

func (b *Tab) watch(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.problems = append(b.problems, fmt.Sprintf("console.%s was called", e.Type))
	case *cdplog.EventEntryAdded:
		b.problems = append(b.problems, fmt.Sprintf("console %s: %s", e.Entry.Level, e.Entry.Text))
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, b.home) && !strings.HasPrefix(url, "data:") {
			b.problems = append(b.problems, "the page asks for "+url)
		}
	}
}

// Run does steps, and fails the test where one of them cannot be done.
func (b *Tab) Run(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// Take runs an action for its value.
func Take[T any](b *Tab, action chromedp.Action[T]) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// Eval returns the value of a JavaScript expression.
func Eval[T any](b *Tab, expression string) T {
	b.t.Helper()
	return Take(b, chromedp.Evaluate[T](expression))
}

// Until waits for a JavaScript condition.
func (b *Tab) Until(condition string) {
	b.t.Helper()
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[chromedp.Void](condition, chromedp.WithPollingTimeout(5*time.Second))); err != nil {
		b.t.Fatalf("waiting for %s: %v", condition, err)
	}
}

// Picture keeps a screenshot among the test's artifacts.
func (b *Tab) Picture(name string) {
	b.t.Helper()
	data := Take(b, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Screen is what a reader sees without scrolling, as PNG.
func (b *Tab) Screen() []byte {
	b.t.Helper()
	return Take(b, chromedp.CaptureScreenshot())
}

// Prefer shows the page as to a reader who prefers a colour scheme, light or dark.
func (b *Tab) Prefer(scheme string) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		b.t.Fatal(err)
	}
	if !Eval[bool](b, `matchMedia('(prefers-color-scheme: `+scheme+`)').matches`) {
		b.t.Fatalf("the page is not shown in %s", scheme)
	}
}

// Accessible fails the test for what axe finds wrong on the page as it is. Without axe the test is skipped: make test installs it.
func (b *Tab) Accessible() {
	b.t.Helper()
	const file = "../../internal/chrome/node_modules/axe-core/axe.min.js"
	axe, err := os.ReadFile(file)
	if err != nil {
		b.t.Skip("SKIPPED: no accessibility checker reads the page, for axe is not installed: npm ci in internal/chrome")
	}
	b.Run(chromedp.Evaluate[chromedp.Void](string(axe)))
	wrong := Take(b, chromedp.Evaluate[[]string](`axe.run().then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.html + ': ' + n.failureSummary)))`,
		chromedp.EvalAwaitPromise))
	for _, w := range wrong {
		b.t.Errorf("axe: %s", w)
	}
}

// Context is the tab's, for calls of the browser's protocol.
func (b *Tab) Context() context.Context { return b.ctx }
