package drupalmodule

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/mockdrupal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/quirk"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
)

// requirePHP skips where there is no PHP: then nothing of the module was tested.
func requirePHP(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("php")
	must.Need(t, err == nil, "NOT TESTED: the exported Drupal module needs php (Debian: apt-get install php-cli)")
}

func builtinSite(t *testing.T, name string) *fixtures.Site {
	t.Helper()
	return must.Get(fixtures.Builtin(name))(t)
}

// exported writes a site out, as both lines of the jsonrpc module take it.
func exported(t *testing.T, name string, line int) (*fixtures.Site, string) {
	t.Helper()
	site := builtinSite(t, name)
	dir := filepath.Join(t.TempDir(), Name)
	must.Do(t, Write(dir, site, Options{JSONRPC: line}))
	return site, dir
}

var sites = []string{"default", "transcripts", "types"}

func TestEveryFileIsPHP(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: no PHP is started")
	requirePHP(t)
	seen := map[string]bool{}
	for _, name := range sites {
		for _, line := range []int{3, 2} {
			t.Run(name+"/"+strconv.Itoa(line), func(t *testing.T) {
				_, dir := exported(t, name, line)
				lint(t, dir, seen)
			})
		}
	}
}

// lint has PHP read the files of a module whose text it has not seen.
func lint(t *testing.T, dir string, seen map[string]bool) {
	t.Helper()
	var files []string
	found := 0
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || ext != ".php" && ext != ".install" {
			return err
		}
		found++
		text, err := os.ReadFile(path)
		if !seen[string(text)] {
			seen[string(text)] = true
			files = append(files, path)
		}
		return err
	})
	must.Assert(t, err == nil && found >= 10, "%v %v", found, err)
	var group sync.WaitGroup
	for part := range slices.Chunk(files, len(files)/runtime.NumCPU()+1) {
		group.Go(func() {
			for _, file := range part {
				out, err := exec.Command("php", "-d", "error_reporting=-1", "-d", "display_errors=1", "-l", file).CombinedOutput()
				must.Expect(t, err == nil && strings.HasPrefix(string(out), "No syntax errors"), "%s: %v\n%s", file, err, out)
			}
		})
	}
	group.Wait()
}

// phpSite runs the module behind stand-ins for Drupal.
type phpSite struct {
	t     *testing.T
	in    *json.Encoder
	out   *bufio.Reader
	later []expectation // of a PHP that has no standard input
}

// expectation is a request and the mock's response.
type expectation struct {
	request phpRequest
	want    string
}

type phpRequest struct {
	Verb          string            `json:"verb"`
	Path          string            `json:"path"`
	Query         map[string]string `json:"query,omitempty"`
	Body          []byte            `json:"body,omitempty"`
	Authorization string            `json:"authorization,omitempty"`
	UID           int               `json:"uid"`
	Name          string            `json:"name"`
}

func call(user fixtures.User, body []byte) phpRequest {
	return phpRequest{Verb: "POST", Path: "/jsonrpc", Body: body, UID: user.UID, Name: strings.TrimPrefix(user.Name, fixtures.Anonymous)}
}

func startPHP(t *testing.T, dir string, environment ...string) *phpSite {
	t.Helper()
	cmd := exec.Command("php", "testdata/run.php", dir)
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), environment...)
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		err := cmd.Wait()
		must.Expect(t, err == nil, "%v %v", "php:", err)
	})
	return &phpSite{t: t, in: json.NewEncoder(in), out: bufio.NewReaderSize(out, 1<<20)}
}

func (p *phpSite) send(r phpRequest) string {
	p.t.Helper()
	_, body := p.serve(r)
	return body
}

// expect sends a request and compares the response with the mock's.
func (p *phpSite) expect(r phpRequest, want string) {
	p.t.Helper()
	if p.in == nil { // sent with all others by expectations
		p.later = append(p.later, expectation{r, want})
		return
	}
	got := p.send(r)
	must.Expect(p.t, got == want, "%s\nPHP:  %s\nmock: %s", r.Body, got, want)
}

func (p *phpSite) serve(r phpRequest) (status int, body string) {
	p.t.Helper()
	must.Do(p.t, p.in.Encode(r))
	return p.read()
}

// read reads a response as testdata/run.php prints it.
func (p *phpSite) read() (status int, body string) {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	must.Assert(p.t, err == nil, "PHP ended or printed no response: %v\n%s", err, line)
	code, text, _ := strings.Cut(strings.TrimSpace(line), " ")
	status, err = strconv.Atoi(code)
	data, wrong := base64.StdEncoding.DecodeString(text)
	must.Assert(p.t, err == nil && wrong == nil, "PHP printed no response: %s", line)
	return status, string(data)
}

// openToAll is a site on which every account may run every method, with a mock of it. What a caller may run and which
// arguments a method takes is decided by the jsonrpc module, not by this one.
func openToAll(t *testing.T, site *fixtures.Site) *mockdrupal.Drupal {
	t.Helper()
	site = site.Clone()
	site.NullFails = false // a fault of the jsonrpc module's line 2
	for i := range site.Methods {
		site.Methods[i].Access = nil
	}
	// Results are validated by the jsonrpc module, which the stand-ins are not.
	return must.Get(mockdrupal.New(site, mockdrupal.Options{Quirks: []string{quirk.LenientOutput}}))(t)
}

func post(mock *mockdrupal.Drupal, user fixtures.User, body []byte) (status int, response string) {
	r := httptest.NewRequest(http.MethodPost, "http://site.test/jsonrpc", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth(user.Name, user.Password)
	w := httptest.NewRecorder()
	mock.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A caller of each kind: the first account, an ordinary one, and nobody.
func callers(site *fixtures.Site) []fixtures.User {
	agent, _ := site.User("agent")
	anonymous, _ := site.User(fixtures.Anonymous)
	for i := range site.Roles {
		if site.Roles[i].ID == fixtures.AnonymousRole {
			site.Roles[i].Permissions = append(site.Roles[i].Permissions, fixtures.UseJSONRPC)
		}
	}
	users := []fixtures.User{*anonymous}
	if agent.Name == "agent" {
		users = append(users, *agent)
	}
	return users
}

// arguments are params for a method, as JSON: none, empty ones, those of its schemas, and what PHP cannot keep.
func arguments(t *testing.T, m *fixtures.Method) []string {
	t.Helper()
	all := []string{"", "{}", "[]"}
	schema := map[string]any{}
	var required []any
	for _, p := range m.Params {
		if resolved, err := exact.Parse(p.Resolved()); err == nil && p.Drupal == nil {
			schema[p.Name] = resolved
		} else {
			schema[p.Name] = true
		}
		if p.Required {
			required = append(required, p.Name)
		}
	}
	maker, err := generate.ForArguments(map[string]any{"type": "object", "properties": schema, "required": required}, rand.New(rand.NewPCG(1, 2)))
	if err == nil {
		for i, c := range append(maker.Edges(), generate.Case{Value: maker.Plain()}) {
			if i%3 == 0 || len(m.Params) < 3 {
				all = append(all, string(encode(t, m, c.Value)))
			}
		}
	}
	for _, p := range m.Params {
		for _, value := range awkward {
			all = append(all, string(encode(t, m, map[string]any{p.Name: json.RawMessage(value)})))
		}
	}
	return all
}

// awkward are values that a round trip through PHP changes, that PHP takes for false, or that find something in the content.
var awkward = []string{`1.0`, `1e400`, `-0.0`, `[ 1 , {} , 1.10 ]`, `{"a":{},"b":[],"0":1}`, `"\u0000</é\ud83d\ude80'\"&"`, `9223372036854775808`, `"0"`, `0`, `false`,
	`{"offset":1,"limit":1}`, `{"offset":"1","limit":-1}`, `{"limit":0}`, `{"type":"node","uuid":"00000000-0000-4000-8000-000000000001"}`,
	`{"type":"node","uuid":"none"}`, `"article"`, `"ARTICLE"`, `1`, `"1"`, `4`, `[]`, `{}`}

func encode(t *testing.T, m *fixtures.Method, value any) []byte {
	t.Helper()
	members, _ := value.(map[string]any)
	if m.ByPosition {
		list := []any{}
		for i := range m.Params {
			list = append(list, members[strconv.Itoa(i)])
		}
		value = list
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	must.Do(t, e.Encode(value))
	return bytes.TrimSpace(b.Bytes())
}

func request(id, method, params string) []byte {
	name, _ := json.Marshal(method)
	body := `{"jsonrpc":"2.0","method":` + string(name)
	if params != "" {
		body += `, "params" : ` + params
	}
	if id != "" {
		body += `,"id":` + id
	}
	return []byte(body + "}")
}

// Each behaviour does what the mock's does: the same request brings the same response, byte for byte.
func TestBehavesAsTheMock(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: no PHP is started")
	requirePHP(t)
	kinds := map[fixtures.Kind]int{}
	for _, name := range sites {
		t.Run(name, func(t *testing.T) {
			site, dir := exported(t, name, 3)
			behavesAsTheMock(t, site.Clone(), startPHP(t, dir), kinds)
		})
	}
	t.Logf("requests that ran, by behaviour: %v", kinds)
	must.Expect(t, len(kinds) >= 13, "only the behaviours %v ran", kinds)
}

// behavesAsTheMock sends the same requests to a module and to a mock of its site, and counts those that ran.
func behavesAsTheMock(t *testing.T, site *fixtures.Site, module *phpSite, kinds map[fixtures.Kind]int) {
	t.Helper()
	users := callers(site)
	mock := openToAll(t, site)
	var ran [][]byte
	for i := range site.Methods {
		m := &site.Methods[i]
		for k, params := range arguments(t, m) {
			user := users[k%len(users)]
			body := request(strconv.Itoa(k+1), m.ID, params)
			before := mock.Runs(m.ID)
			_, want := post(mock, user, body)
			if mock.Runs(m.ID) == before {
				continue // the jsonrpc module refuses it
			}
			kinds[m.Behaviour.Kind]++
			ran = append(ran, body)
			module.expect(call(user, body), want)
		}
	}
	batches(t, mock, module, users[len(users)-1], ran)
}

// batches joins requests that ran, some of them as notifications.
func batches(t *testing.T, mock *mockdrupal.Drupal, module *phpSite, user fixtures.User, ran [][]byte) {
	dice := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		var batch [][]byte
		for range 2 + dice.IntN(3) {
			body := ran[dice.IntN(len(ran))]
			if dice.IntN(4) == 0 && len(batch) > 0 {
				body = append(body[:bytes.LastIndex(body, []byte(`,"id":`)):bytes.LastIndex(body, []byte(`,"id":`))], '}')
			}
			batch = append(batch, body)
		}
		body := slices.Concat([]byte("[ "), bytes.Join(batch, []byte(" ,\n")), []byte("]"))
		if status, want := post(mock, user, body); status == http.StatusOK {
			module.expect(call(user, body), want)
		}
	}
}

// A notification has no response: what its result would be replaces no other.
func TestANotificationChangesNoOtherResponse(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: no PHP is started")
	requirePHP(t)
	site := builtinSite(t, "default").Clone()
	failing, _ := site.Method("fail.internal")
	failing.Behaviour.Error.Data = fixtures.Raw(`{"load":1.0}`)
	dir := filepath.Join(t.TempDir(), Name)
	must.Do(t, Write(dir, site, Options{JSONRPC: 3}))
	body := []byte(`[{"jsonrpc":"2.0","method":"echo","params":{"any":1.0}},{"jsonrpc":"2.0","method":"fail.internal"},
		{"jsonrpc":"2.0","method":"echo","params":{"any":1},"id":1}]`)
	agent, _ := site.User("agent")
	_, want := post(openToAll(t, site), *agent, body)
	must.Assert(t, strings.Contains(want, `{"any":1}`) && strings.Contains(want, `{"load":1.0}`), "the mock responds %s", want)
	must.Equal(t, startPHP(t, dir).send(call(*agent, body)), want, "PHP, beside the mock")
}

// collection is what the mock shows to who may run everything.
func collection(t *testing.T, site *fixtures.Site) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "http://site.test/jsonrpc/methods", nil)
	admin, _ := site.User("admin")
	r.SetBasicAuth(admin.Name, admin.Password)
	w := httptest.NewRecorder()
	openToAll(t, site).ServeHTTP(w, r)
	return w.Body.String()
}

// The attributes declare what the mock shows of the methods.
func TestDeclaresWhatTheMockShows(t *testing.T) {
	requirePHP(t)
	for _, name := range sites {
		t.Run(name, func(t *testing.T) {
			site, dir := exported(t, name, 3)
			php := startPHP(t, dir)
			got := php.send(phpRequest{Verb: http.MethodOptions, Path: "/jsonrpc/methods"})
			must.Expect(t, got == "", "OPTIONS has the body %s, expected none", got)
			if got, want := php.send(phpRequest{Verb: http.MethodGet, Path: "/jsonrpc/methods"}), collection(t, site); got != want {
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				from := max(0, at-200)
				t.Errorf("at byte %d of %d\nPHP:  %.400s\nmock: %.400s", at, len(want), got[from:], want[from:])
			}
		})
	}
}

// Drupal refuses an annotation with a property that its class does not have; then no method of any module runs.
func TestAnnotationsHaveTheirOwnPropertiesAlone(t *testing.T) {
	property := regexp.MustCompile(`(?m)^ \*   (\w+) = `)
	site, dir := exported(t, "default", 2)
	found := 0
	err := filepath.WalkDir(filepath.Join(dir, "src/Plugin"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range property.FindAllStringSubmatch(string(text), -1) {
			found++
			must.Expect(t, slices.Contains([]string{"id", "usage", "access", "params", "responseHeaders", "call"}, m[1]),
				"%s has the property %s", filepath.Base(path), m[1])
		}
		return err
	})
	must.Expect(t, err == nil && found >= 3*len(site.Methods), "%d properties were read: %v", found, err)
}

// A web server that keeps Drupal's rules (core/assets/scaffold/files/htaccess) serves no file that has a password.
func TestPasswordsAreNotServed(t *testing.T) {
	site := builtinSite(t, "default")
	files := must.Get(Files(site, Options{JSONRPC: 3}))(t)
	found := 0
	for name, data := range files {
		if agent, _ := site.User("agent"); !bytes.Contains(data, []byte(agent.Password)) {
			continue
		}
		found++
		ext := filepath.Ext(name)
		must.Expect(t, ext == ".yml" || ext == ".install" || ext == ".php", "%s has passwords and would be served", name)
	}
	must.Expect(t, found != 0, "no file has the password of agent")
}

// A module must not mix with what is there, and has a class for each method.
func TestWrite(t *testing.T) {
	site, dir := exported(t, "default", 3)
	must.Say(t, Write(dir, site, Options{JSONRPC: 3}), "is not empty")
	must.Say(t, Write(filepath.Join(t.TempDir(), "other"), site, Options{JSONRPC: 4}), "give 2 or 3")
	classes, err := os.ReadDir(filepath.Join(dir, "src/Plugin", Name, "Method"))
	must.Expect(t, err == nil && len(classes) == len(site.Methods), "%d classes for %d methods: %v", len(classes), len(site.Methods), err)
}
