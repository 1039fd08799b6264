package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bridgecheck/bridgecheck/internal/freeport"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
)

func TestMain(m *testing.M) {
	if err := os.Setenv("COLUMNS", "1000"); err != nil { // lines are compared as a whole
		panic(err)
	}
	testscript.Main(m, map[string]func(){"bridgecheck": main, "stubborn": stubborn, "mutant": mutant, "shortLived": shortLived, "crashes": crashes, "echoes": echoes, "person": person})
}

// TestScripts runs the command lines of testdata/script. Beside testscript's own commands they have:
//
//	exits CODE COMMAND…   the command ends with exactly this code
//	serve NAME COMMAND…   the command serves in the background; $NAME is the URL that it prints
//	ended FILE            the process whose number is in the file has ended
//	sameverdicts A B      two report.json files have the same verdict on each clause that applies in both
//
// and addresses in the environment: servers that are no bridge ($GATEWAY, $REFUSES, $NOT_FOUND, $BROKEN, $EMPTY, $HTML, $HANGS), lists of two
// tools of which a is wrong ($WRONG_A) or both are ($WRONG_AB), a proxy to a bridge ($PROXY), a bridge that attacks
// terminals ($HOSTILE), a server of MCP alone ($MCP_ALONE), a free port ($FREE), and one in use ($BUSY). $EXAMPLES is the folder of that name.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup:               setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "serve": serveCommand, "sameverdicts": sameVerdicts, "ended": ended,
		},
	})
}

// nulls are the servers that are no bridge.
var nulls = map[string]http.HandlerFunc{
	"GATEWAY": respond(502, "text/html", "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"+
		"<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx/1.22.1</center>\r\n</body>\r\n</html>\r\n"),
	"REFUSES":   respond(401, "application/json", `{"error":{"code":"authentication_required","message":"no"}}`),
	"NOT_FOUND": respond(404, "text/plain", "not here"),
	"BROKEN":    respond(500, "text/plain", "out of order"),
	"EMPTY":     respond(200, "application/json", "{}"),
	"HTML":      respond(200, "text/html", "<!DOCTYPE html><title>Welcome</title>"),
	"HANGS":     func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
}

// listings are servers that show the tools a and b and nothing else; properties [] are wrong.
var listings = map[string]http.HandlerFunc{"WRONG_A": listing("[]", "{}"), "WRONG_AB": listing("[]", "[]"), "PROXY": proxied,
	"HOSTILE": hostile, "MCP_ALONE": mcpAlone}

// mcpAlone responds to initialize.
func mcpAlone(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/mcp" {
		respond(404, "text/plain", "not here")(w, r)
		return
	}
	respond(200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{"tools":{}},"serverInfo":{"name":"alone","version":"1"}}}`)(w, r)
}

// hostile is a bridge that puts the commands of terminals and CI systems into its responses.
func hostile(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/mcp/tools/list" {
		listing("{}", "{}")(w, r)
		return
	}
	respond(200, "application/json\t; ::error::header", "{\"text\": \"\x1b[2J\x1b]0;title\x07\r\n::error::body\u202e\"}\n::error::line\n##[error]line")(w, r)
}

// proxied is a proxy that takes a password and reaches a bridge where nobody else does, at bridge.invalid. It shows what
// it was sent.
func proxied(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Seen", r.Header.Get("Proxy-Authorization"))
	switch {
	case r.URL.Host != "bridge.invalid":
		w.WriteHeader(http.StatusBadGateway)
	case r.Header.Get("Proxy-Authorization") == "":
		w.WriteHeader(http.StatusProxyAuthRequired)
	default:
		listing("[]", "{}")(w, r)
	}
}

func listing(propertiesOfA, propertiesOfB string) http.HandlerFunc {
	const tool = `{"name":"%s","description":"does","inputSchema":{"type":"object","properties":%s}}`
	return respond(200, "application/json", fmt.Sprintf(`{"tools":[`+tool+","+tool+"]}", "a", propertiesOfA, "b", propertiesOfB))
}

func respond(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func setup(env *testscript.Env) error {
	env.Setenv("COLUMNS", "1000")
	for _, servers := range []map[string]http.HandlerFunc{nulls, listings} {
		for name, handler := range servers {
			server := httptest.NewServer(handler)
			env.Defer(server.Close)
			env.Setenv(name, server.URL)
			env.Setenv(name+"_ADDR", strings.TrimPrefix(server.URL, "http://"))
		}
	}
	if strings.HasSuffix(env.WorkDir, "script-login") {
		bed, err := testbed.Start(testbed.Options{Profile: testbed.OAuth})
		if err != nil {
			return err
		}
		env.Defer(bed.Close)
		env.Setenv("OAUTH", bed.URL)
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	env.Defer(func() { busy.Close() })
	env.Setenv("BUSY", busy.Addr().String())
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		return err
	}
	env.Setenv("EXAMPLES", examples)
	free, release, err := freeport.Address()
	if err != nil {
		return err
	}
	env.Defer(release)
	env.Setenv("FREE", free)
	return nil
}

// person is a browser whose user logs in as agent.
func person() {
	resp, err := http.PostForm(os.Args[1], url.Values{"account": {"agent"}, "password": {"agent-pass"}, "decision": {"allow"}})
	if err != nil || resp.StatusCode != http.StatusOK {
		os.Exit(1)
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s: expected exit code %d, got %d", strings.Join(args[1:], " "), want, got)
	}
}

func serveCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: serve NAME COMMAND…")
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Dir = ts.Getenv("WORK")
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ts.Defer(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		ts.Fatalf("%s: expected `listening on URL`, got %v", strings.Join(args[1:], " "), err)
	}
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		ts.Fatalf("%s: expected `listening on URL`, got %q", strings.Join(args[1:], " "), line)
	}
	ts.Setenv(args[0], url)
	ts.Setenv(args[0]+"_ADDR", strings.TrimPrefix(url, "http://"))
}

func ended(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] ended FILE")
	}
	pid := strings.TrimSpace(ts.ReadFile(args[0]))
	state, err := exec.Command("ps", "-o", "state=", "-p", pid).Output()
	if over := err != nil || strings.HasPrefix(string(state), "Z"); over == neg {
		ts.Fatalf("process %s of %s: ended is %t (%s)", pid, args[0], over, strings.TrimSpace(string(state)))
	}
}

func sameVerdicts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sameverdicts A B")
	}
	var verdicts [2]map[string]reports.Verdict
	for i, file := range args {
		report, err := reports.ReadFile(ts.MkAbs(file))
		ts.Check(err)
		verdicts[i] = report.ByClause()
		maps.DeleteFunc(verdicts[i], func(_ string, v reports.Verdict) bool { return v == reports.NotApplicable })
	}
	var differ []string
	compared := 0
	for id, one := range verdicts[0] {
		other, both := verdicts[1][id]
		if !both {
			continue
		}
		compared++
		if one != other {
			differ = append(differ, fmt.Sprintf("%s: %s and %s", id, one, other))
		}
	}
	if compared == 0 || len(differ) > 0 {
		ts.Fatalf("of %d clauses that both test, different verdicts in %s and %s: %s", compared, args[0], args[1], strings.Join(differ, ", "))
	}
}

// The verdict does not depend on a file: what cannot be written is said, and the failures and the outcome stand on stdout.
func TestTheVerdictNeedsNoFile(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_STEP_SUMMARY", t.TempDir()) // no file either
	dir := filepath.Join(t.TempDir(), "report")
	must.Do(t, os.WriteFile(dir, nil, 0o600))
	report := &reports.Report{Results: []reports.Result{{ID: "list/x", Level: reports.MUST, Area: "list", Verdict: reports.Fail, Message: "it is wrong"}}}
	unwritten := format.WriteAll(report, dir)
	must.Assert(t, unwritten != nil, "a file counts as a directory")
	for name, c := range map[string]struct {
		flags runFlags
		want  []string
	}{
		"summary": {runFlags{}, []string{"report in " + dir + " cannot be written: not a directory\n", "FAILED  list/x", "\nnot conformant: 1 clause fails\n"}},
		"verbose": {runFlags{Values: settings.Values{Command: settings.Command{Verbose: true}}}, []string{"cannot be written", "FAILED  list/x", "\nnot conformant: 1 clause fails\n"}},
		"quiet":   {runFlags{Values: settings.Values{Command: settings.Command{Quiet: true}}}, []string{"not conformant: 1 clause fails\n"}},
		"json":    {runFlags{Values: settings.Values{Command: settings.Command{JSON: true}}}, []string{`"id": "list/x"`}},
	} {
		cmd := newRun()
		var out, errs bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		err := c.flags.show(cmd, report, dir, unwritten)
		must.Expect(t, err == nil, "%s: %v", name, err)
		for _, want := range c.want {
			must.Expect(t, strings.Contains(out.String(), want), "%s: stdout lacks %q:\n%s", name, want, &out)
		}
		must.Expect(t, !strings.Contains(out.String(), "report: ") && strings.Contains(errs.String(), "cannot be written: not a directory"),
			"%s: stdout\n%sstderr\n%s", name, &out, &errs)
	}
}
