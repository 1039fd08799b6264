package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/callpage"
	"github.com/bridgecheck/bridgecheck/internal/chrome"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/reports"
)

// openConsole serves the console until the test ends, by default for the reference bridge, and returns its address.
func openConsole(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var stderr bytes.Buffer
	done := make(chan int, 1)
	go func() {
		code := execute(ctx, append([]string{"console", "--listen", "127.0.0.1:0"}, args...), in, &stderr)
		in.Close()
		done <- code
	}()
	t.Cleanup(func() {
		cancel()
		must.Equal(t, <-done, exitOK, "exit code, with %s", &stderr)
	})
	line, _ := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	must.Assert(t, ok, "the console printed %q", line)
	return address
}

// flows are the console in a browser, and what a person does there.
type flows struct {
	*chrome.Tab
	t    *testing.T
	home string
}

func (b *flows) open(query string) { b.Run(chromedp.Navigate(b.home + query)) }

// sent sends what is typed, by the keyboard, and waits for what came of it.
func (b *flows) sent(contains ...string) {
	b.t.Helper()
	b.Run(chromedp.Evaluate[chromedp.Void](`document.querySelector('#result').replaceChildren(); document.querySelector('#call [type=submit]').focus()`),
		chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.Until(`document.querySelector('#result details[open] .site') !== null`)
	text := b.has("#result", contains...)
	if strings.Contains(text, "agent-pass") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("agent:agent-pass"))) {
		b.t.Errorf("the page shows a password:\n%s", text)
	}
}

// has returns the text of a part of the page, which contains all of these.
func (b *flows) has(part string, contains ...string) string {
	b.t.Helper()
	text := chrome.Eval[string](b.Tab, `document.querySelector('`+part+`').innerText`)
	for _, want := range contains {
		must.Expect(b.t, strings.Contains(text, want), "%s lacks %q:\n%s", part, want, text)
	}
	return text
}

// press goes to a control, which may stand in a part that is closed, and presses it by the keyboard.
func (b *flows) press(control string) {
	b.t.Helper()
	const focus = `(c => { for (let d = c; d = d.parentElement.closest('details');) d.open = true; c.focus() })(`
	b.Run(chromedp.Evaluate[chromedp.Void](focus+control+`)`), chromedp.KeyEvent(kb.Enter))
}

// keep keeps the picture of a flow, with a part of the page in it.
func (b *flows) keep(name, part string) {
	if !*updatePictures {
		return
	}
	b.Run(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur(); document.querySelector('` + part + `').scrollIntoView({block: 'end'})`))
	webp := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: new(int64(50))}
	picture := must.Get(chromedp.Call(b.Context(), page.CaptureScreenshot, webp))(b.t)
	keepPicture(b.t, "console-"+name+".webp", picture.Data)
}

func button(text string) string {
	return `[...document.querySelectorAll('button')].find(b => b.textContent === '` + text + `')`
}

// listed is whether the chosen caller is shown content.search.
const listed = `[...document.querySelectorAll('.tools li:not(.unseen) a')].some(a => a.textContent === 'content.search')`

const toCall = "?caller=agent&tool=content.search"

func TestConsoleInABrowser(t *testing.T) {
	home := openConsole(t)
	window := chrome.Start(t)
	flow := func(name string, do func(b *flows)) {
		t.Run(name, func(t *testing.T) {
			b := &flows{chrome.Open(t, window, home, 1280, 860), t, home}
			do(b)
		})
	}
	flow("callers", func(b *flows) {
		unseen := func(caller string) bool {
			b.open("?caller=" + caller)
			return chrome.Eval[bool](b.Tab, `[...document.querySelectorAll('.unseen a')].some(a => a.textContent === 'content.create')`)
		}
		must.Expect(t, !unseen("admin") && unseen("agent"),
			"content.create is shown to admin and not to agent, and the page says otherwise")
		b.press(`document.querySelector('.unseen a')`) // a tool that agent is not shown
		b.Run(chromedp.WaitReady(`#call`))
		b.has("#middle", "agent is not shown this tool")
		b.keep("callers", "h1")
		b.Run(chromedp.SendKeys(`#filter`, "search"))
		must.Lacks(t, b.has(".tools"), "content.create", "what the filter leaves")
	})
	flow("form", func(b *flows) {
		b.open(toCall)
		b.Run(chromedp.SendKeys(`[data-name="query"] textarea`, "first"))
		b.Run(chromedp.SendKeys(`[data-name="limit"] input`, "x"), chromedp.Click(`[value="json"]`))
		b.Until(`document.activeElement === document.querySelector('[data-name="limit"] input[aria-invalid]')`) // x is no number
		b.Run(chromedp.SetValue(`[data-name="limit"] input`, "9007199254740993"), chromedp.Click(`[value="json"]`))
		const want = "{\n  \"query\": \"first\",\n  \"page\": {\n    \"limit\": 9007199254740993\n  }\n}"
		must.Equal(t, chrome.Eval[string](b.Tab, `document.querySelector('#json').value`), want, "the form as JSON")
		b.Run(chromedp.SetValue(`#json`, `{"query": "first", "page": {"limit": 2}}`), chromedp.Click(`[value="form"]`))
		must.Equal(t, chrome.Eval[string](b.Tab, `document.querySelector('[data-name="limit"] input').value`), "2", "JSON with the limit 2 in the form")
		b.sent("POST", "/mcp/tools/invoke as agent: 200", `"limit": 2`, "curl", "$AGENT_PASSWORD",
			"POST /jsonrpc as agent: 200", "content.search ran", "keeps invoke/answers-result")
		b.keep("call", "h1")
		b.Run(chromedp.Click(`[value="json"]`), chromedp.SetValue(`#json`, `{"more": "<b id=foreign>"}`), chromedp.Click(`[value="form"]`))
		b.Until(`document.activeElement.id === 'json' && document.querySelector('#problem').textContent.includes('no fields')`)
		b.sent("as agent: 4", `<b id=foreign>`, "keeps errors/envelope")
		must.Expect(t, !chrome.Eval[bool](b.Tab, `document.querySelector('#foreign') !== null`),
			"text of the bridge became part of the page")
	})
	flow("call", func(b *flows) {
		b.open(toCall)
		b.Run(chromedp.SendKeys(`[data-name="query"] textarea`, "first"), chromedp.SetValue(`#call [name="caller"]`, "anonymous"))
		b.sent("as anonymous: 401")
		b.Run(chromedp.SetValue(`#call [name="caller"]`, "agent"), chromedp.Click(`[value="MCP"]`))
		b.sent("/mcp as agent: 200", `"tools/call"`, "content.search ran", "keeps mcp/initialize", "keeps mcp/structured-content")
		b.Run(chromedp.Click(`[value="REST"]`))
		b.sent("/mcp/tools/invoke as agent: 200", "content.search ran", "keeps invoke/answers-result")
		b.Run(chromedp.Evaluate[chromedp.Void](`document.querySelector('#result').replaceChildren();
			document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', ctrlKey: true, bubbles: true}))`)) // the result has the focus
		b.Until(`document.querySelector('#result').textContent.includes('as agent: 200')`)
	})
	flow("faults", func(b *flows) {
		b.open(toCall)
		b.Run(chromedp.SendKeys(`[data-name="query"] textarea`, "typed"), chromedp.Click(`#faults summary`), chromedp.SetValue(`#kind`, "status"))
		b.Run(chromedp.SendKeys(`#more`, `{"status": 900}`))
		b.press(`document.querySelector('#arm')`)
		b.Until(`document.querySelector('#site [role=alert]').textContent.includes('status 900 is not between 200 and 599')`)
		b.Run(chromedp.SetValue(`#more`, `{"status": 503}`), chromedp.SendKeys(`#only`, "content.*"))
		b.press(`document.querySelector('#arm')`)
		b.Until(`document.querySelector('#faults summary').textContent === 'Faults: 1 armed'`)
		for range 2 { // it stays until it is disarmed, and what was typed stays, too
			b.sent(`"typed"`, "as agent: 503", "fault status", "keeps errors/envelope")
		}
		b.has("#faults", `"method":"content.*"`, `"status":503`)
		b.keep("faults", "#site")
		b.press(button("Disarm"))
		b.Until(`document.querySelector('#faults summary').textContent === 'Faults: 0 armed' && document.activeElement.matches('#faults summary')`)
		b.sent("as agent: 200")
		b.Run(chromedp.SetValue(`#kind`, "status"), chromedp.SetValue(`#more`, `{"status": 503, "count": 1}`))
		b.press(`document.querySelector('#arm')`)
		b.Until(`document.querySelector('#faults summary').textContent === 'Faults: 1 armed'`)
		b.sent("as agent: 503")
		b.Until(`document.querySelector('#faults summary').textContent === 'Faults: 0 armed'`)
	})
	flow("site", func(b *flows) {
		for _, change := range []struct{ caller, control, part string }{
			{"agent", "#methods", "content.search"}, {"discoverer", "#role-discoverer", "access content"},
		} {
			b.open("?tool=content.search&caller=" + change.caller)
			b.Run(chromedp.SendKeys(`[data-name="query"] textarea`, "typed"))
			before := chrome.Eval[bool](b.Tab, listed)
			for _, want := range []bool{!before, before} {
				now := map[bool]string{true: "Give ", false: "Take away "}
				b.press(`[...document.querySelectorAll('` + change.control + ` button')].find(b => b.textContent === '` + now[want] + change.part + `')`)
				b.Until(`document.activeElement.textContent === '` + now[!want] + change.part + `'`)
				b.press(`document.querySelector('#again')`)
				b.Until(`document.activeElement.id === 'again' && (` + listed + `) === ` + strconv.FormatBool(want))
			}
			b.sent(`"typed"`, "as "+change.caller)
			b.keep("site", "#site")
		}
	})
	flow("journal", func(b *flows) {
		b.open(toCall)
		b.Run(chromedp.SendKeys(`[data-name="query"] textarea`, "first"), chromedp.Click(`#journal summary`))
		b.Until(`document.querySelector('#journal p') !== null`)
		last := chrome.Eval[string](b.Tab, `document.querySelector('#journal p').id`)
		b.sent("as agent: 200")
		b.Until(`(p => p.id !== '` + last + `' && /POST \/jsonrpc as agent: 200, content.search ran/.test(p.textContent))(document.querySelector('#journal p'))`)
		b.keep("journal", "#journal")

		// A call that hangs on a fault is seen, and goes on when that is disarmed.
		b.Run(chromedp.Evaluate[chromedp.Void](`document.querySelector('#result').replaceChildren()`), chromedp.SetValue(`#kind`, "hang"))
		b.press(`document.querySelector('#arm')`)
		b.Until(`document.querySelector('#faults summary').textContent === 'Faults: 1 armed'`)
		b.press(`document.querySelector('#call [type=submit]')`)
		b.Until(`document.querySelector('#journal p').textContent.includes('under way')`)
		b.press(button("Disarm"))
		b.Until(`document.querySelector('#result details[open] .site') !== null && !document.querySelector('#journal').textContent.includes('under way')`)
	})
	flow("keys", func(b *flows) {
		b.open(toCall)
		b.Run(chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter)) // past the tools
		reached := map[string]bool{}
		for range 20 {
			b.Run(chromedp.KeyEvent(kb.Tab))
			reached[chrome.Eval[string](b.Tab, `(e => e.id || e.name || e.parentElement.id || e.type || e.tagName)(document.activeElement)`)] = true
		}
		for _, want := range []string{"view", "f2", "caller", "way", "submit", "faults", "methods", "permissions", "journal"} {
			must.Expect(t, reached[want], "Tab never reaches %s: %v", want, reached)
		}
	})
	flow("everybody", func(b *flows) {
		b.open(toCall)
		b.Run(chromedp.SendKeys(`[data-name="query"] textarea`, "first"))
		b.sent("as agent: 200")
		b.Run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll('details').forEach(d => d.open = true)`))
		b.Until(`document.querySelector('#journal p') !== null`)
		for _, width := range []int64{1280, 390} {
			b.Run(chromedp.EmulateViewport(width, 800))
			got := chrome.Eval[int64](b.Tab, `document.documentElement.scrollWidth`)
			must.Expect(t, got <= width, "at %d px the page is %d px wide", width, got)
			for _, scheme := range []string{"light", "dark"} {
				b.Prefer(scheme)
				b.Accessible()
			}
		}
	})
}

// What failed in a run is opened, sent again, and fixed meanwhile.
func TestConsoleOpensAReport(t *testing.T) {
	window, dir := chrome.Start(t), t.TempDir()
	site, release, err := freeport.Address()
	must.Do(t, err)
	t.Cleanup(release)
	correct := must.Get(bridge.New(bridge.Options{Drupal: "http://" + site, DiscoveryOptions: bridge.DiscoveryOptions{DiscoveryTTL: time.Second}}))(t)
	t.Cleanup(correct.Close)
	var fixed atomic.Bool
	front := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := httptest.NewRecorder()
		correct.ServeHTTP(seen, r)
		maps.Copy(w.Header(), seen.Header())
		if seen.Code >= 400 && !fixed.Load() {
			seen.Body = bytes.NewBufferString(`{"message": "no"}`)
			w.Header().Del("Content-Length")
		}
		w.WriteHeader(seen.Code)
		w.Write(seen.Body.Bytes()) //nolint:errcheck // the caller is gone
	}))
	o := command(t, "run", "--url", front.URL, "--mock-listen", site, "--only", "errors/envelope", "--quiet", "--report-dir", dir)
	must.Assert(t, o.code == 1, "exit code %d: %s%s", o.code, o.stdout, o.stderr)
	o = command(t, "console", dir)
	must.Expect(t, o.code == exitUsage && strings.Contains(o.stderr, "name the bridge"), "a report without its bridge: exit code %d: %s", o.code, o.stderr)
	report := must.Get(reports.ReadFile(filepath.Join(dir, "report.json")))(t)
	for _, r := range report.With(reports.Fail) {
		for i := range r.Evidence {
			r.Evidence[i].Drupal = []reports.Upstream{{HTTP: "POST /jsonrpc", Method: "content.search", Status: 503, Fault: "status"}}
		}
	}
	var edited bytes.Buffer
	must.Do(t, reports.WriteJSON(&edited, report))
	must.Do(t, os.WriteFile(filepath.Join(dir, "report.json"), edited.Bytes(), 0o644))
	home := openConsole(t, dir, "--url", front.URL, "--mock-listen", site)
	b := &flows{chrome.Open(t, window, home, 1280, 860), t, home}
	b.press(`document.querySelector('.failed a')`)
	b.Run(chromedp.WaitReady(`#verb`))
	b.has("#middle", "errors/envelope", "fail")
	b.sent("breaks errors/envelope")
	fixed.Store(true)
	b.sent("keeps errors/envelope")
	b.keep("report", "h1")
	b.press(`[...document.querySelectorAll('#middle button')].find(b => b.textContent === 'Arm it')`)
	b.Until(`document.querySelector('#faults summary').textContent === 'Faults: 1 armed'`)
	b.Run(chromedp.Click(`#faults summary`))
	b.has("#faults", `"method":"content.search"`, `"status":503`)

	// A request that belonged to a session of MCP is sent in a new one.
	for session, want := range map[bool]string{true: "as agent: <b class=\"status\">200", false: "as agent: <b class=\"status\">404"} {
		header := "Content-Type: application/json\\nAccept: application/json, text/event-stream\\nMcp-Session-Id: of-the-report\\nMcp-Protocol-Version: 2025-06-18"
		response := must.Get(http.Post(home+"send", "application/json", strings.NewReader(fmt.Sprintf(`{"caller": "agent", "way": "HTTP", "request":
			{"method": "POST", "path": "/mcp", "header": "%s", "body": "{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\": \"tools/list\"}", "session": %t}}`, header, session))))(t)
		text := string(must.Get(io.ReadAll(response.Body))(t))
		must.Expect(t, strings.Contains(text[strings.LastIndex(text, "<summary>"):], want), "in a new session %t: %s", session, text)
		response.Body.Close()
	}
	for _, width := range []int64{1280, 390} {
		b.Run(chromedp.EmulateViewport(width, 800))
		b.Accessible()
	}
}

// The person logs in before the tools are listed.
func TestConsoleLogsIn(t *testing.T) {
	bed := must.Get(testbed.Start(testbed.Options{Profile: testbed.OAuth}))(t)
	t.Cleanup(bed.Close)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("BROWSER", "person")
	response := must.Get(http.Get(openConsole(t, "--url", bed.URL, "--login")))(t)
	defer response.Body.Close()
	if page := string(must.Get(io.ReadAll(response.Body))(t)); !strings.Contains(page, `aria-current="true">agent</a> <span class="note">1`) || strings.Contains(page, "eyJ") {
		t.Errorf("the tools of agent are not listed, or its token is shown: %.2000s", page)
	}
}

// A page on the web can make a browser send requests here, by any name: each lacks the token, or has another host.
func TestConsoleRefusesStrangers(t *testing.T) {
	home := openConsole(t)
	u := must.Get(url.Parse(home))(t)
	call := `{"caller":"agent","way":"REST","tool":"echo","arguments":{}}`
	const form = "application/x-www-form-urlencoded"
	own, site := http.Header{"Origin": {"http://" + u.Host}, "Sec-Fetch-Site": {"same-origin"}}, http.Header{"Sec-Fetch-Site": {"same-site"}}
	for _, c := range []struct {
		name, method, path, host, kind, body string
		header                               http.Header
		want                                 int
	}{
		{"the page", "GET", u.Path, u.Host, "", "", nil, 200},
		{"a call", "POST", u.Path + "send", u.Host, "application/json", call, nil, 200},
		{"a call of the page", "POST", u.Path + "send", u.Host, "application/json", call, own, 200},
		{"a fault of the page", "POST", u.Path + "site", u.Host, form, "kind=delay&more=%7B%22count%22%3A1%2C%22delay%22%3A%221ms%22%7D", own, 200},
		{"localhost", "GET", u.Path, "localhost:" + u.Port(), "", "", nil, 200},
		{"no token", "GET", "/", u.Host, "", "", nil, 403},
		{"another token", "POST", "/aaaaaaaaaaaaaaaaaaaaaaaaaa/send", u.Host, "application/json", call, nil, 403},
		{"half of the token", "GET", u.Path[:9] + "/", u.Host, "", "", nil, 403},
		{"a foreign host", "GET", u.Path, "evil.example:" + u.Port(), "", "", nil, 403},
		{"a foreign host, the journal", "GET", u.Path + "journal", "evil.example:" + u.Port(), "", "", nil, 403},
		{"a foreign host, a call", "POST", u.Path + "send", "evil.example", "application/json", call, nil, 403},
		{"a call of a foreign origin", "POST", u.Path + "send", u.Host, "application/json", call, http.Header{"Origin": {"https://evil.example"}}, 403},
		{"a call of an opaque origin", "POST", u.Path + "send", u.Host, "application/json", call, http.Header{"Origin": {"null"}}, 403},
		{"a fault of another port", "POST", u.Path + "site", u.Host, form, "kind=status", http.Header{"Origin": {"http://127.0.0.1:1"}}, 403},
		{"a fault of another port, as a browser says it", "POST", u.Path + "site", u.Host, form, "kind=status", site, 403},
		{"a list of a foreign page", "POST", u.Path + "list", u.Host, form, "", http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{"a call by GET", "GET", u.Path + "send", u.Host, "", "", nil, 405},
		{"a list by GET", "GET", u.Path + "list", u.Host, "", "", nil, 405},
		{"a fault by GET", "GET", u.Path + "site?kind=status", u.Host, "", "", nil, 405},
		{"a form", "POST", u.Path + "send", u.Host, "text/plain", call, nil, 400},
		{"another way", "POST", u.Path + "send", u.Host, "application/json", strings.Replace(call, "REST", "SOAP", 1), nil, 400},
	} {
		r := must.Get(http.NewRequest(c.method, "http://"+u.Host+c.path, strings.NewReader(c.body)))(t)
		r.Host = c.host
		maps.Copy(r.Header, c.header)
		r.Header.Set("Content-Type", c.kind)
		response := must.Get(http.DefaultClient.Do(r))(t)
		body := must.Get(io.ReadAll(response.Body))(t)
		response.Body.Close()
		must.Expect(t, response.StatusCode == c.want, "%s: %d, want %d: %.300s", c.name, response.StatusCode, c.want, body)
		secret := "agent-pass"
		must.Expect(t, !strings.Contains(string(body), secret), "%s: the password of agent is shown", c.name)
		if policy := response.Header.Get("Content-Security-Policy"); c.want == 200 && (strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'; style-src 'self'; script-src 'self'")) {
			t.Errorf("%s: the policy is %q", c.name, policy)
		}
	}
	for _, address := range []string{"0.0.0.0:0", ":8083", "192.0.2.1:8083", "127.0.0.1.example:8083", "8083"} {
		o := command(t, "console", "--listen", address)
		must.Expect(t, o.code == exitUsage, "--listen %s: exit code %d", address, o.code)
	}
}

func TestConsoleShowsClauses(t *testing.T) {
	for _, c := range []struct {
		name, header, body string
		status             int
		kept, broken       string
		path               string // of a request of a report; "": a call of a tool
	}{
		{"a result", "nosniff", `{"result": 1}`, 200, "errors/status-agrees http/nosniff invoke/answers-result", "", ""},
		{"no result", "", `{"nid": 1}`, 200, "errors/status-agrees", "http/nosniff invoke/answers-result", ""},
		{"an error", "nosniff", `{"error": {"code": "tool_not_found", "message": "no such tool"}}`, 404,
			"errors/code-stable errors/envelope errors/status-agrees http/nosniff", "", ""},
		{"an error under 200", "nosniff", `{"error": {"code": "tool_not_found", "message": "no such tool"}}`, 200,
			"errors/code-stable http/nosniff", "errors/status-agrees", ""},
		{"no envelope", "", `{"message": "no"}`, 400, "errors/status-agrees", "errors/envelope", ""},
		{"a list", "nosniff", `{"tools": [], "nextCursor": 1}`, 200, "errors/status-agrees http/nosniff list/answers-json list/has-tools-array", "http/no-shared-cache list/next-cursor-type", "/mcp/tools/list"},
		{"a tool", "nosniff", `{"tool": {"name": "t"}}`, 200, "describe/answers-tool errors/status-agrees http/nosniff", "http/no-shared-cache", "/mcp/tools/describe?name=t"},
		{"another tool", "nosniff", `{"tool": {"name": "t"}}`, 200, "errors/status-agrees http/nosniff", "describe/answers-tool http/no-shared-cache", "/mcp/tools/describe?name=u"},
		{"another address", "", `{}`, 200, "", "", "/mcp"},
		{"a limit", "", `slower`, 429, "", "", ""},
	} {
		bridge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if c.header != "" {
				w.Header().Set("X-Content-Type-Options", c.header)
			}
			if c.status == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", "1")
			}
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}))
		call := callpage.Call{Caller: "anonymous", Way: callpage.REST, Tool: "t", Arguments: []byte("{}")}
		if c.path != "" {
			call.Way, call.Request = callpage.HTTP, &callpage.Request{Method: "GET", Path: c.path, Body: new("")}
		}
		sent, err := send(t.Context(), engine.Target{URL: bridge.URL}, engine.Options{}, call)
		bridge.Close()
		must.Do(t, err)
		var kept, broken []string
		for _, s := range sent.Clauses {
			if s.Wrong == "" {
				kept = append(kept, s.ID)
			} else {
				broken = append(broken, s.ID)
			}
		}
		slices.Sort(kept)
		slices.Sort(broken)
		k, b := strings.Join(kept, " "), strings.Join(broken, " ")
		must.Expect(t, k == c.kept && b == c.broken, "%s keeps %s and breaks %s; want %s and %s", c.name, k, b, c.kept, c.broken)
	}
}
