package harness_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/suites/harness"
)

func noVariables(string) string { return "" }

func TestCurlReadsBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		printable := rapid.StringOf(rapid.RuneFrom([]rune("aZ09 '\"\\$`{}[]:;&|<>()*?!#~%\tä日🔑")))
		c := harness.Curl{
			Method: rapid.SampledFrom([]string{"GET", "HEAD", "POST", "DELETE"}).Draw(t, "method"),
			Header: http.Header{"X-One": {printable.Draw(t, "header")}}, Body: printable.Draw(t, "body"),
			URL: "http://127.0.0.1:1/mcp?x=" + url.QueryEscape(printable.Draw(t, "query")) + rapid.SampledFrom([]string{"", "&y[]=1"}).Draw(t, "list"),
		}
		if rapid.Bool().Draw(t, "absolute target") {
			c.Target = "http://elsewhere.invalid:80/mcp"
		}
		if strings.Contains(c.Header.Get("X-One"), "$") {
			return // a variable
		}
		read, err := harness.ParseCurl(c.String(), noVariables)
		if err != nil || !reflect.DeepEqual(read, c) {
			t.Fatalf("%s\nread as %+v (%v), want %+v", c, read, err, c)
		}
	})
}

func TestCurlIsWhatAShellTakesItFor(t *testing.T) {
	c := harness.Curl{Method: "POST", User: "agent:$AGENT_PASSWORD", Header: http.Header{"X-Key": {"$AGENT_X_KEY"}, "X-Plain": {"it's $5 `x`"}}, Body: `{"a":"$HOME 'x'"}`, URL: "http://h/p?q=1&r"}
	shell := exec.Command("sh", "-c", "set -- "+c.String()+`; for word; do printf '%s\n' "$word"; done`)
	shell.Env = []string{`AGENT_PASSWORD=p"a$s'`, "AGENT_X_KEY=k-1"}
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := strings.Join([]string{"curl", "-i", "-X", "POST", "-u", `agent:p"a$s'`, "-H", "X-Key: k-1", "-H", "X-Plain: it's $5 `x`", "-H", "Content-Type:", "--data-binary", `{"a":"$HOME 'x'"}`, "http://h/p?q=1&r"}, "\n") + "\n"
	if string(out) != want {
		t.Errorf("a shell reads\n%s\nwant\n%s", out, want)
	}
}

// TestCurlSendsTheSameAgain runs curl itself.
func TestCurlSendsTheSameAgain(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("SKIPPED: curl is missing, so no line is run")
	}
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, typed := r.Header["Content-Type"]
		got = fmt.Sprintf("%s %s %v %q %q", r.Method, r.RequestURI, typed, r.Header.Get("Content-Type"), body)
	}))
	defer server.Close()
	for _, c := range []struct {
		name    string
		request harness.Curl
		want    string
	}{
		{"a GET", harness.Curl{Method: "GET"}, `GET / false "" ""`},
		{"a HEAD", harness.Curl{Method: "HEAD"}, `HEAD / false "" ""`},
		{"a GET with a body", harness.Curl{Method: "GET", Header: http.Header{"Content-Type": {"application/json"}}, Body: "{}"}, `GET / true "application/json" "{}"`},
		{"a body without a type", harness.Curl{Method: "POST", Body: "{}"}, `POST / false "" "{}"`},
		{"a body that looks like a file", harness.Curl{Method: "POST", Body: "@/etc/hostname"}, `POST / false "" "@/etc/hostname"`},
		{"brackets", harness.Curl{Method: "GET", URL: "?cursor[]=x&y={a,b}"}, `GET /?cursor[]=x&y={a,b} false "" ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.request.URL = server.URL + "/" + c.request.URL
			line := "exec " + curl + " -s" + strings.TrimPrefix(c.request.String(), "curl")
			if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", c.request, err, out)
			}
			if got != c.want {
				t.Errorf("%s\nsends %s\nwant  %s", c.request, got, c.want)
			}
		})
	}
}

func TestParseCurlRefuses(t *testing.T) {
	for line, says := range map[string]string{
		"":                                     "no curl line",
		"rm -rf /":                             "no curl line",
		"curl -i":                              "no curl line",
		"curl -i -o file http://h/":            "does not write: -o",
		"curl -i nowhere":                      "names no URL",
		"curl -i 'http://h/":                   "quote without an end",
		`curl -i -u "a:$A_PASSWORD" http://h/`: "the environment variable A_PASSWORD is not set",
		"curl -i 'http://h/?x=[redacted]'":     "held a secret",
	} {
		if _, err := harness.ParseCurl(line, noVariables); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ParseCurl(%q) = %v, want an error with %q", line, err, says)
		}
	}
}

func FuzzParseCurl(f *testing.F) {
	f.Add(`curl -i -X POST -u "a:$P" -H 'X: it'\''s' --data-binary '{}' 'http://h/'`)
	f.Fuzz(func(t *testing.T, line string) {
		c, err := harness.ParseCurl(line, func(name string) string { return "v" })
		if err == nil && c.URL == "" {
			t.Errorf("%q gave no URL and no error", line)
		}
	})
}
