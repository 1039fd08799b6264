package suites_test

import (
	"net/http"
	"net/url"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bridgecheck/suites"
)

func noVariables(string) string { return "" }

func TestCurlReadsBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		printable := rapid.StringOf(rapid.RuneFrom([]rune("aZ09 '\"\\$`{}[]:;&|<>()*?!#~%\tä日🔑")))
		c := suites.Curl{
			Method: rapid.SampledFrom([]string{"GET", "HEAD", "POST", "DELETE"}).Draw(t, "method"),
			Header: http.Header{"X-One": {printable.Draw(t, "header")}}, Body: printable.Draw(t, "body"),
			URL: "http://127.0.0.1:1/mcp?x=" + url.QueryEscape(printable.Draw(t, "query")),
		}
		if strings.Contains(c.Header.Get("X-One"), "$") {
			return // a variable
		}
		read, err := suites.ParseCurl(c.String(), noVariables)
		if err != nil || !reflect.DeepEqual(read, c) {
			t.Fatalf("%s\nread as %+v (%v), want %+v", c, read, err, c)
		}
	})
}

func TestCurlIsWhatAShellTakesItFor(t *testing.T) {
	c := suites.Curl{Method: "POST", User: "agent:$AGENT_PASSWORD", Header: http.Header{"X-Key": {"$AGENT_X_KEY"}, "X-Plain": {"it's $5 `x`"}}, Body: `{"a":"$HOME 'x'"}`, URL: "http://h/p?q=1&r"}
	shell := exec.Command("sh", "-c", "set -- "+c.String()+`; for word; do printf '%s\n' "$word"; done`)
	shell.Env = []string{`AGENT_PASSWORD=p"a$s'`, "AGENT_X_KEY=k-1"}
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := strings.Join([]string{"curl", "-i", "-X", "POST", "-u", `agent:p"a$s'`, "-H", "X-Key: k-1", "-H", "X-Plain: it's $5 `x`", "--data-binary", `{"a":"$HOME 'x'"}`, "http://h/p?q=1&r"}, "\n") + "\n"
	if string(out) != want {
		t.Errorf("a shell reads\n%s\nwant\n%s", out, want)
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
		if _, err := suites.ParseCurl(line, noVariables); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ParseCurl(%q) = %v, want an error with %q", line, err, says)
		}
	}
}

func FuzzParseCurl(f *testing.F) {
	f.Add(`curl -i -X POST -u "a:$P" -H 'X: it'\''s' --data-binary '{}' 'http://h/'`)
	f.Fuzz(func(t *testing.T, line string) {
		c, err := suites.ParseCurl(line, func(name string) string { return "v" })
		if err == nil && c.URL == "" {
			t.Errorf("%q gave no URL and no error", line)
		}
	})
}
