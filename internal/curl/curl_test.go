package curl_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/bridgecheck/bridgecheck/internal/curl"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

// hostile are texts with which a bridge may try to leave its quotes, and the environment that it must not read.
var hostile = []string{
	"$HOME", "$AGENT_PASSWORD", "x $SECRET", "${SECRET}", "$(touch pwned)", "`touch pwned`", "';touch pwned;'", `";touch pwned;"`, `\`, `'\''`,
	"!touch", "!!", "a\nb", "\n", "\n\n", "a\n", "\r\n", "\x03\ntouch pwned\n", "\x1b[201~touch pwned\n", "\x00", "a\x00b", "\xff\xfe", "\xc3", "%s%n", "%", "-n", "-", "@/etc/hostname",
	"\u202e\u2066", "ä日🔑", "\\000\\1", "#", "~", "*", "{a,b}", "[a-z]", "&|<>();", "\u2028", "\ufffd", "*)", "esac", ">pwned", "|touch pwned",
}

// A terminal obeys control characters in a line that is pasted, and shows other text in another order.
func TestALineIsPrintable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom(hostile), rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
		c := curl.Command{Method: text.Draw(t, "method"), User: curl.Value{Text: text.Draw(t, "user"), Variable: text.Draw(t, "variable")},
			Header: []curl.Field{{Name: text.Draw(t, "name"), Value: curl.Value{Text: text.Draw(t, "header"), Variable: text.Draw(t, "another")}}},
			Body:   text.Draw(t, "body"), URL: text.Draw(t, "URL")}
		line := c.String()
		unsafe := func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }
		must.Assert(t, utf8.ValidString(line) && !strings.ContainsFunc(line, unsafe), "%q", line)
	})
}

// inShell runs a line in a shell where curl is a function that prints its arguments, each with a NUL after it, and its
// input where an argument says so. No command can be found, and none may leave a file.
func inShell(tb testing.TB, shell string, c curl.Command, env ...string) []string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell)
	cmd.Stdin = strings.NewReader(`curl() { for word; do printf '%s\000' "$word"; if [ "$word" = @- ]; then ` + cat + `; printf '\000'; fi; done; }` + "\n" + c.String() + "\n")
	cmd.Dir = tb.TempDir()
	cmd.Env = append([]string{"PATH=/nonexistent", "SECRET=expanded-secret", "HOME=/expanded-home"}, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	must.Assert(tb, err == nil && errs.Len() <= 0, "%s: %v: %s\n%q", shell, err, errs.String(), c.String())
	files, err := os.ReadDir(cmd.Dir)
	must.Assert(tb, err == nil && len(files) <= 0, "%s: %v: the line left files: %v\n%q", shell, err, files, c.String())
	return strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
}

const cat = "/bin/cat"

// words are what curl must receive: a method, a user, a header and a body, and the input where the body comes by it.
func words(c curl.Command, user, header string) []string {
	noNUL := func(s string) string { return strings.ReplaceAll(s, "\x00", "") }
	want := []string{"-i", "-X", c.Method}
	if strings.ContainsAny(c.URL, "[]{}") {
		want = append(want, "-g")
	}
	if strings.Contains(c.URL, "/.") {
		want = append(want, "--path-as-is")
	}
	if user != "" {
		want = append(want, "-u", noNUL(user))
	}
	return append(want, "-H", noNUL(header))
}

func checkShell(tb testing.TB, shell, name, text, body, target string) {
	tb.Helper()
	c := curl.Command{Method: "POST", User: curl.Value{Text: text + ":", Variable: "AGENT_PASSWORD"}, Body: body, URL: target,
		Header: []curl.Field{{Name: name, Value: curl.Value{Text: text}}}}
	value := ": " + text
	if text == "" {
		value = ";"
	}
	want := words(c, text+":p\"a$s'", name+value)
	typed := strings.EqualFold(name, "Content-Type")
	if body != "" && !typed {
		want = append(want, "-H", "Content-Type:")
	}
	got := inShell(tb, shell, c, `AGENT_PASSWORD=p"a$s'`)
	must.Assert(tb, len(got) >= len(want) && reflect.DeepEqual(got[:len(want)], want),
		"%s: curl receives\n%q, expected\n%q\n%q", shell, got, want, c.String())
	got = got[len(want):]
	last := got[len(got)-1]
	must.Assert(tb, last == strings.ReplaceAll(target, "\x00", ""), "%s: curl receives the URL %q, expected %q\n%q", shell, last, target, c.String())
	got = got[:len(got)-1]
	received := ""
	switch {
	case len(got) > 1 && got[1] == "@-":
		received = strings.Join(got[2:], "\x00")
	case len(got) == 2:
		received = got[1]
	case len(got) != 0:
		tb.Fatalf("%s: curl receives %q too many\n%q", shell, got, c.String())
	}
	must.Assert(tb, received == body, "%s: curl receives the body %q, expected %q\n%q", shell, received, body, c.String())
}

// shells are those that are here; bash reads a line in other ways than dash.
func shells(tb testing.TB) []string {
	var found []string
	for _, name := range []string{"sh", "dash", "bash", "zsh", "ksh"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		tb.Skip("SKIPPED: no POSIX shell is here")
	}
	return found
}

func TestAShellPassesOnEveryByteAndRunsNothing(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: no shell is started")
	for _, shell := range shells(t) {
		for _, text := range hostile {
			checkShell(t, shell, "X-One", text, text, "http://h/"+text)
			checkShell(t, shell, "X-One", "x"+text+"y", "x"+text+"y", "http://h/x"+text+"y?q="+text)
		}
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		checkShell(t, shell, "X-One", string(all), string(all)+strings.Repeat("long", 64<<10), "http://h/"+string(all))
	}
}

// Positive control: what a shell does to the texts without our quotes shows in the checks above.
func TestTheStandInShowsWhatAShellExpands(t *testing.T) {
	got := inShell(t, shells(t)[0], curl.Command{Method: "GET", URL: "http://h/", Header: []curl.Field{{Name: "X", Value: curl.Value{Variable: "SECRET"}}}})
	want := []string{"-i", "-H", "X: expanded-secret", "http://h/"}
	must.Expect(t, reflect.DeepEqual(got, want), "curl receives %q, expected %q", got, want)
}

// FuzzShell takes any bytes that a bridge may put into a request.
func FuzzShell(f *testing.F) {
	for _, text := range hostile {
		f.Add("X-One", text, text, "http://h/"+text)
	}
	available := shells(f)
	f.Fuzz(func(t *testing.T, name, text, body, target string) {
		if name == "" || strings.Contains(name, "\x00") || strings.Contains(target, "\x00") || target == "" {
			return // headers have names, and what NUL becomes is another test's
		}
		for _, shell := range available {
			checkShell(t, shell, name, text, body, target)
		}
	})
}

// TestCurlSendsTheSameAgain runs curl itself.
func TestCurlSendsTheSameAgain(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: no curl is started")
	program, err := exec.LookPath("curl")
	must.Need(t, err == nil, "SKIPPED: curl is missing, so no line is run")
	var got string
	server := must.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, typed := r.Header["Content-Type"]
		_, empty := r.Header["X-Empty"]
		got = fmt.Sprintf("%s %s %v %q %v %q", r.Method, r.RequestURI, typed, r.Header.Get("Content-Type"), empty, body)
	}))
	json := []curl.Field{{Name: "Content-Type", Value: curl.Value{Text: "application/json"}}}
	for _, c := range []struct {
		name    string
		request curl.Command
		want    string
	}{
		{"a GET", curl.Command{Method: "GET"}, `GET / false "" false ""`},
		{"a HEAD", curl.Command{Method: "HEAD"}, `HEAD / false "" false ""`},
		{"a GET with a body", curl.Command{Method: "GET", Header: json, Body: "{}"}, `GET / true "application/json" false "{}"`},
		{"a body without a type", curl.Command{Method: "POST", Body: "{}"}, `POST / false "" false "{}"`},
		{"a body that looks like a file", curl.Command{Method: "POST", Body: "@/etc/hostname"}, `POST / false "" false "@/etc/hostname"`},
		{"a body that no text is", curl.Command{Method: "POST", Header: json, Body: "\x00\xff\x1b'\n%"}, `POST / true "application/json" false "\x00\xff\x1b'\n%"`},
		{"an empty header", curl.Command{Method: "GET", Header: []curl.Field{{Name: "X-Empty"}}}, `GET / false "" true ""`},
		{"brackets", curl.Command{Method: "GET", URL: "?cursor[]=x&y={a,b}"}, `GET /?cursor[]=x&y={a,b} false "" false ""`},
		{"a path upwards", curl.Command{Method: "GET", URL: "a/../b"}, `GET /a/../b false "" false ""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.request.URL = server.URL + "/" + c.request.URL
			line := strings.Replace(c.request.String(), "curl -i", program+" -s -i", 1)
			out, err := exec.Command("sh", "-c", line).CombinedOutput()
			must.Assert(t, err == nil, "%s: %v\n%s", c.request, err, out)
			must.Expect(t, got == c.want, "%s\nsends    %s\nexpected %s", c.request, got, c.want)
		})
	}
}
