package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/bridgecheck/bridgecheck/internal/callpage"
	"github.com/bridgecheck/bridgecheck/internal/chrome"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// openConsole serves the console for the reference bridge until the test ends, and returns its address.
func openConsole(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var stderr bytes.Buffer
	done := make(chan int, 1)
	go func() {
		code := execute(ctx, []string{"console", "--listen", "127.0.0.1:0"}, in, &stderr)
		in.Close()
		done <- code
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitOK {
			t.Errorf("exit code %d: %s", code, &stderr)
		}
	})
	line, _ := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		t.Fatalf("the console printed %q", line)
	}
	return address
}

func TestConsoleInABrowser(t *testing.T) {
	home := openConsole(t)
	b := chrome.Open(t, chrome.Start(t), home, 1280, 860)
	unseen := func(caller string) bool {
		b.Run(chromedp.Navigate(home + "?caller=" + caller))
		return chrome.Eval[bool](b, `[...document.querySelectorAll('.unseen a')].some(a => a.textContent === 'content.create')`)
	}
	if unseen("admin") || !unseen("agent") {
		t.Error("content.create is shown to admin and not to agent, and the page says otherwise")
	}
	// sent sends what is typed, by the keyboard, and waits for what came of it.
	sent := func(what string, contains ...string) {
		t.Helper()
		b.Run(chromedp.Evaluate[chromedp.Void](`document.querySelector('#result').replaceChildren()`),
			chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
		b.Until(`document.querySelector('#result details[open] .site') !== null`)
		text := chrome.Eval[string](b, `document.querySelector('#result').innerText`)
		for _, want := range contains {
			if !strings.Contains(text, want) {
				t.Errorf("%s: the page lacks %q:\n%s", what, want, text)
			}
		}
		if strings.Contains(text, "agent-pass") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("agent:agent-pass"))) {
			t.Errorf("%s: the page shows a password:\n%s", what, text)
		}
	}

	b.Run(chromedp.Navigate(home+"?caller=agent&tool=content.search"), chromedp.SendKeys(`[data-name="query"] textarea`, "first"))
	b.Run(chromedp.SendKeys(`[data-name="limit"] input`, "x"), chromedp.Click(`[value="json"]`))
	b.Until(`document.activeElement === document.querySelector('[data-name="limit"] input[aria-invalid]')`) // x is no number
	b.Run(chromedp.SetValue(`[data-name="limit"] input`, "9007199254740993"), chromedp.Click(`[value="json"]`))
	const want = "{\n  \"query\": \"first\",\n  \"page\": {\n    \"limit\": 9007199254740993\n  }\n}"
	if got := chrome.Eval[string](b, `document.querySelector('#json').value`); got != want {
		t.Errorf("the form is as JSON %s, want %s", got, want)
	}
	b.Run(chromedp.SetValue(`#json`, `{"query": "first", "page": {"limit": 2}}`), chromedp.Click(`[value="form"]`))
	if got := chrome.Eval[string](b, `document.querySelector('[data-name="limit"] input').value`); got != "2" {
		t.Errorf("JSON with the limit 2 is in the form %q", got)
	}
	b.Run(chromedp.SendKeys(`[data-name="limit"] input`, ""))
	sent("by the form", "POST", "/mcp/tools/invoke as agent: 200", `"limit": 2`, "curl", "$AGENT_PASSWORD",
		"POST /jsonrpc as agent: 200", "content.search ran", "keeps invoke/answers-result")
	b.Picture("console")
	if *updatePictures {
		b.Run(chromedp.EmulateViewport(1280, 1220))
		keepPicture(t, "console.png", b.Screen())
	}

	b.Run(chromedp.Click(`[value="json"]`), chromedp.SetValue(`#json`, `{"more": "<b id=foreign>"}`), chromedp.Click(`[value="form"]`))
	b.Until(`document.activeElement.id === 'json' && document.querySelector('#problem').textContent.includes('no fields')`)
	sent("by JSON", "as agent: 4", `<b id=foreign>`, "keeps errors/envelope")
	if chrome.Eval[bool](b, `document.querySelector('#foreign') !== null`) {
		t.Error("text of the bridge became part of the page")
	}
	b.Run(chromedp.SetValue(`#json`, `{"query": "first"}`),
		chromedp.Evaluate[chromedp.Void](`document.querySelector('#kind').value = 'status'; document.querySelector('#kind').dispatchEvent(new Event('change'))`),
		chromedp.SendKeys(`#json`, ""))
	sent("with a fault of the site", "as agent: 502", "fault status", "keeps errors/envelope")
	b.Run(chromedp.SetValue(`#fault`, `{"kind": "nothing"}`), chromedp.SendKeys(`#json`, ""),
		chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	b.Until(`document.querySelector('#result').textContent.includes('Nothing was sent: the fault')`)
	b.Run(chromedp.Evaluate[chromedp.Void](`document.querySelector('#fault').value = ''`))
	b.Run(chromedp.SetValue(`#json`, `{"query": "first"}`), chromedp.SetValue(`#call [name="caller"]`, "anonymous"), chromedp.SendKeys(`#json`, ""))
	sent("as another caller", "as anonymous: 401")
	b.Run(chromedp.SetValue(`#call [name="caller"]`, "agent"), chromedp.Click(`[value="MCP"]`), chromedp.SendKeys(`#json`, ""))
	sent("over MCP", "/mcp as agent: 200", `"tools/call"`, "content.search ran")

	for _, width := range []int64{1280, 390} {
		b.Run(chromedp.EmulateViewport(width, 800))
		if got := chrome.Eval[int64](b, `document.documentElement.scrollWidth`); got > width {
			t.Errorf("at %d px the page is %d px wide", width, got)
		}
	}
	b.Picture("console-390")
	if all := chrome.Eval[string](b, `[...document.querySelectorAll('input:not([type=hidden]), textarea, select')]
		.filter(e => !e.labels.length).map(e => e.outerHTML).join()`); all != "" {
		t.Errorf("fields without a label: %s", all)
	}
	b.Run(chromedp.Evaluate[chromedp.Void](`document.body.className = 'before'`), chromedp.Click(`header button`), chromedp.WaitReady(`body:not(.before) #call`))
}

// A page on the web can make a browser send requests here, by any name: each lacks the token, or has another host.
func TestConsoleRefusesStrangers(t *testing.T) {
	home := openConsole(t)
	u := must.Get(url.Parse(home))(t)
	call := `{"caller":"agent","way":"REST","tool":"echo","arguments":{}}`
	for _, c := range []struct {
		name, method, path, host, kind, body string
		want                                 int
	}{
		{"the page", "GET", u.Path, u.Host, "", "", 200},
		{"a call", "POST", u.Path + "send", u.Host, "application/json", call, 200},
		{"localhost", "GET", u.Path, "localhost:" + u.Port(), "", "", 200},
		{"no token", "GET", "/", u.Host, "", "", 403},
		{"another token", "POST", "/aaaaaaaaaaaaaaaaaaaaaaaaaa/send", u.Host, "application/json", call, 403},
		{"half of the token", "GET", u.Path[:9] + "/", u.Host, "", "", 403},
		{"a foreign host", "GET", u.Path, "evil.example:" + u.Port(), "", "", 403},
		{"a foreign host, a call", "POST", u.Path + "send", "evil.example", "application/json", call, 403},
		{"a call by GET", "GET", u.Path + "send", u.Host, "", "", 405},
		{"a list by GET", "GET", u.Path + "list", u.Host, "", "", 405},
		{"a form", "POST", u.Path + "send", u.Host, "text/plain", call, 400},
		{"another way", "POST", u.Path + "send", u.Host, "application/json", strings.Replace(call, "REST", "SOAP", 1), 400},
	} {
		r := must.Get(http.NewRequest(c.method, "http://"+u.Host+c.path, strings.NewReader(c.body)))(t)
		r.Host = c.host
		r.Header.Set("Content-Type", c.kind)
		response := must.Get(http.DefaultClient.Do(r))(t)
		body := must.Get(io.ReadAll(response.Body))(t)
		response.Body.Close()
		if response.StatusCode != c.want {
			t.Errorf("%s: %d, want %d: %s", c.name, response.StatusCode, c.want, body)
		}
		if secret := "agent-pass"; strings.Contains(string(body), secret) {
			t.Errorf("%s: the password of agent is shown", c.name)
		}
	}
}

func TestConsoleShowsClauses(t *testing.T) {
	for _, c := range []struct {
		name, header, body string
		status             int
		kept, broken       string
	}{
		{"a result", "nosniff", `{"result": 1}`, 200, "errors/status-agrees http/nosniff invoke/answers-result", ""},
		{"no result", "", `{"nid": 1}`, 200, "errors/status-agrees", "http/nosniff invoke/answers-result"},
		{"an error", "nosniff", `{"error": {"code": "tool_not_found", "message": "no such tool"}}`, 404,
			"errors/code-stable errors/envelope errors/status-agrees http/nosniff", ""},
		{"an error under 200", "nosniff", `{"error": {"code": "tool_not_found", "message": "no such tool"}}`, 200,
			"errors/code-stable http/nosniff", "errors/status-agrees"},
		{"no envelope", "", `{"message": "no"}`, 400, "errors/status-agrees", "errors/envelope"},
		{"a limit", "", `slower`, 429, "", ""},
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
		sent, err := send(t.Context(), engine.Target{URL: bridge.URL}, engine.Options{},
			callpage.Call{Caller: "anonymous", Way: callpage.REST, Tool: "t", Arguments: []byte("{}")})
		bridge.Close()
		if err != nil {
			t.Fatal(err)
		}
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
		if k, b := strings.Join(kept, " "), strings.Join(broken, " "); k != c.kept || b != c.broken {
			t.Errorf("%s keeps %s and breaks %s; want %s and %s", c.name, k, b, c.kept, c.broken)
		}
	}
}
