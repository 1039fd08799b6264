package compare_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/compare"
)

// site runs a mock of the default site and returns its address and data.
func site(t *testing.T) (string, *fixtures.Site) {
	t.Helper()
	data := must.Get(fixtures.Builtin("default"))(t)
	d := must.Get(mockdrupal.New(data, mockdrupal.Options{}))(t)
	s := must.Get(d.Listen("127.0.0.1:0"))(t)
	t.Cleanup(func() { s.Close() })
	return s.URL, data
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

const someCases = `
{"id":"some/whoami","as":"agent","auth":"basic","fresh_cache":true,"request":{"method":"GET","path":"/jsonrpc/methods","headers":{}}}
{"id":"some/denied","as":"anonymous","auth":"none","fresh_cache":true,"request":{"method":"POST","path":"/jsonrpc","headers":{"Content-Type":"application/json"},"body":"{}"}}
{"id":"some/bearer","as":"agent","auth":"bearer","fresh_cache":true,"request":{"method":"POST","path":"/jsonrpc","headers":{},"body":"[]"}}
{"id":"signing/login","as":"agent","auth":"none","fresh_cache":true,"request":{"method":"POST","path":"/user/login?_format=json","headers":{},"body":"{\"name\":\"agent\",\"pass\":\"{{password}}\"}"}}
`

func TestRecordingsAgreeWithTheSiteTheyWereMadeOf(t *testing.T) {
	address, data := site(t)
	out := t.TempDir()
	must.Do(t, compare.MakeRecordings(t.Context(), compare.RecordOptions{URL: address, Cases: write(t, someCases), Out: out, Credentials: compare.SiteCredentials(data)}))
	report := must.Get(compare.Verify(t.Context(), compare.VerifyOptions{Transcripts: out, URL: address, Credentials: compare.SiteCredentials(data)}))(t)
	must.Expect(t, report.Agrees(), "%v", report.Differences)
	must.Expect(t, report.Summary.Records == 4 && len(report.Areas) == 2, "summary %+v", report.Summary)
	for _, area := range []string{"some", "signing"} {
		text := must.Get(os.ReadFile(filepath.Join(out, area+".jsonl")))(t)
		for _, secret := range []string{"agent-pass", "agent-token", "Bearer", "Basic "} {
			must.Expect(t, !strings.Contains(strings.ReplaceAll(string(text), `Basic realm`, ""), secret),
				"the recording of %s holds %q:\n%s", area, secret, text)
		}
	}
}

func TestADifferenceIsNamed(t *testing.T) {
	address, data := site(t)
	out := t.TempDir()
	recording := `{"id":"x/one","as":"agent","auth":"basic","fresh_cache":true,"request":{"method":"POST","path":"/jsonrpc","headers":{},"body":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no.such\"}"},` +
		`"response":{"status":400,"headers":{"Content-Type":"application/json","X-Generator":"Drupal 10 (https://www.drupal.org)"},"body":"{\"jsonrpc\":\"2.0\",\"id\":1.0,\"error\":{\"code\":-32601,\"message\":\"Method Not Found\",\"data\":\"?\"}}"}}`
	must.Do(t, os.WriteFile(filepath.Join(out, "x.jsonl"), []byte(recording), 0o600))
	report := must.Get(compare.Verify(t.Context(), compare.VerifyOptions{Transcripts: out, URL: address, Credentials: compare.SiteCredentials(data)}))(t)
	var where []string
	for _, d := range report.Differences {
		where = append(where, d.Where)
	}
	// All headers are compared, those that only one side has included.
	if strings.Join(where, ", ") != "header Cache-Control, header Content-Language, header Expires, header X-Content-Type-Options, header X-Frame-Options, body /id, body /error/data" || report.Agrees() {
		t.Errorf("differences at %v", where)
	}
}

func TestBadInputIsNamed(t *testing.T) {
	_, data := site(t)
	for name, c := range map[string]struct{ cases, url, says string }{
		"no JSON":       {"{", "http://127.0.0.1:1", ":1:"},
		"no id":         {`{"request":{"method":"GET","path":"/"}}`, "http://127.0.0.1:1", "id is missing"},
		"id of no area": {`{"id":"x","request":{"method":"GET","path":"/"}}`, "http://127.0.0.1:1", "AREA/NAME"},
		"relative path": {`{"id":"a/b","request":{"method":"GET","path":"x"}}`, "http://127.0.0.1:1", "starts with /"},
		"nothing":       {"\n", "http://127.0.0.1:1", "no cases"},
		"no address":    {someCases, "127.0.0.1", "http://"},
		"no password":   {strings.ReplaceAll(someCases, `"as":"agent"`, `"as":"a-b"`), "http://127.0.0.1:1", "no password is given for the account a-b: set BRIDGECHECK_PASSWORD_A_B"},
		"no site there": {someCases, "http://127.0.0.1:1", "cannot be reached"},
	} {
		err := compare.MakeRecordings(t.Context(), compare.RecordOptions{URL: c.url, Cases: write(t, c.cases), Out: t.TempDir(), Credentials: compare.SiteCredentials(data)})
		must.Expect(t, err != nil && strings.Contains(err.Error(), c.says), "%s: %v, want it to say %q", name, err, c.says)
	}
}

func TestCredentialsFromEnvironmentAndFile(t *testing.T) {
	env := compare.EnvironmentCredentials(func(name string) (string, bool) {
		v, ok := map[string]string{"BRIDGECHECK_PASSWORD_AGENT_2": "p", "BRIDGECHECK_TOKEN_AGENT_2": "t"}[name]
		return v, ok
	})
	c, ok := env("agent-2")
	must.Expect(t, ok && c.Password == "p" && c.Tokens[""] == "t", "from the environment: %+v %v", c, ok)
	_, ok = env("nobody")
	must.Expect(t, !ok, "an account that the environment does not name is known")
	file := must.Get(compare.FileCredentials(write(t, `{"agent":{"password":"p","tokens":{"scoped":"t"}}}`)))(t)
	c, ok = file("agent")
	must.Expect(t, ok && c.Password == "p" && c.Tokens["scoped"] == "t", "from the file: %+v %v", c, ok)
	must.Refuse(compare.FileCredentials(write(t, `{"agent":{"pasword":"p"}}`)))(t, "pasword", "a wrong member")
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(`{"id":"a/b","request":{"method":"GET","path":"/"},"response":{"status":200,"headers":{},"body":"x"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := compare.ParseRecord(line)
		if err == nil {
			compare.Compare(r, compare.Received{Status: r.Response.Status, Body: line}, "http://127.0.0.1:1")
		}
	})
}
