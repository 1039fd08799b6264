package repo

import (
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// publicPackages are those that other programs embed.
var publicPackages = []string{"suites", "mockdrupal", "bridge", "fixtures", "reports"}

// An example that is no more than compiled proves nothing, so each has its output.
func TestPublicPackagesHaveExamples(t *testing.T) {
	for _, name := range publicPackages {
		file := must.Get(parser.ParseFile(token.NewFileSet(), "", read(t, name+"/example_test.go"), parser.ParseComments))(t)
		examples := doc.Examples(file)
		must.Expect(t, len(examples) > 0, "%s/example_test.go has no example", name)
		for _, e := range examples {
			must.Expect(t, e.Output != "", "%s/example_test.go: Example%s has no output", name, e.Name)
		}
	}
}

// passwordArgument matches a password, or another secret, that stands in a command where other programs of the machine see
// it. A variable, and a name without a value, is none.
var passwordArgument = regexp.MustCompile(`(?i)(^|\s)(-u|--user)[ =]?['"]?[^\s:$]+:[^\s$]|://[^\s/:@]+:[^\s/@$]+@|(password|passwd|secret|token)[=: ]['"]?[^\s'"$…<{&,.)]`)

func TestREADMEShowsNoPasswordInAnArgument(t *testing.T) {
	for _, c := range []string{"curl -u agent:agent-pass http://x", "run --url https://agent:pw@x", "DRUPAL_PASSWORD=hunter2 bridgecheck", "--token 'abc'"} {
		must.Expect(t, passwordArgument.MatchString(c), "%q passes: this proves nothing", c)
	}
	for i, part := range strings.Split(read(t, "README.md"), "```") {
		if i%2 == 0 {
			continue // text, not a block of commands
		}
		for line := range strings.Lines(part) {
			must.Equal(t, passwordArgument.FindString(line), "", "a password in an argument of README.md, which the environment should hold, in %q", line)
		}
	}
}

// The files of docs/go.md compile in another module. A workspace joins the two, for which the build cache has the packages of this one.
func TestFromGoCompilesInAnotherModule(t *testing.T) {
	must.Need(t, !testing.Short(), "NO OTHER MODULE WAS BUILT WITH THIS ONE: -short is set")
	module, dir := modulePath(t), t.TempDir()
	here := must.Get(filepath.Abs(root))(t)
	mod := strings.Replace(read(t, "go.mod"), "module "+module, "module example.org/consumer", 1)
	version := regexp.MustCompile(`(?m)^go .*$`).FindString(mod)
	files := map[string]string{"go.mod": mod, "go.work": version + "\n\nuse (\n\t.\n\t" + here + "\n)\n", "go.work.sum": read(t, "go.sum"),
		"bridge.go": "package mybridge\n\nimport \"net/http\"\n\nfunc New(string) http.Handler { return http.NotFoundHandler() }\n"}
	samples := regexp.MustCompile("(?s)\n```go\n(package .*?)```").FindAllStringSubmatch(read(t, "docs/go.md"), -1)
	must.Assert(t, len(samples) == 2, "docs/go.md has %d whole files in Go, want 2", len(samples))
	for i, sample := range samples {
		files[fmt.Sprintf("sample%d_test.go", i)] = sample[1]
	}
	for name, text := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	output, err := inTree(t, dir, "go vet ./...")
	must.Expect(t, err == nil, "%v\n%s", err, output)
}
