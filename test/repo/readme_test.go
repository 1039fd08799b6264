package repo

import (
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

// The lines of the README's "From Go" compile in another module. A workspace joins the two, for which the build cache has the
// packages of this one.
func TestREADMEFromGoCompilesInAnotherModule(t *testing.T) {
	must.Need(t, !testing.Short(), "NO OTHER MODULE WAS BUILT WITH THIS ONE: -short is set")
	_, section, _ := strings.Cut(read(t, "docs/go.md"), "# From Go\n")
	_, lines, ok := strings.Cut(section, "\n```go\n")
	lines, _, closed := strings.Cut(lines, "```")
	must.Assert(t, ok && closed, "docs/go.md has no Go under \"From Go\"")
	module, dir := modulePath(t), t.TempDir()
	here := must.Get(filepath.Abs(root))(t)
	mod := strings.Replace(read(t, "go.mod"), "module "+module, "module example.org/consumer", 1)
	version := regexp.MustCompile(`(?m)^go .*$`).FindString(mod)
	work := version + "\n\nuse (\n\t.\n\t" + here + "\n)\n"
	program := "package consumer\n\nimport (\n\t\"net/http\"\n\t\"testing\"\n\n" +
		"\t\"" + module + "/suites\"\n\t\"" + module + "/suites/bridgetest\"\n)\n\n" +
		"type bridge struct{}\n\nfunc (bridge) New(string) http.Handler { return http.NotFoundHandler() }\n\nvar mybridge bridge\n\n" + lines
	for name, text := range map[string]string{"go.mod": mod, "go.work": work, "go.work.sum": read(t, "go.sum"), "consumer_test.go": program} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	output, err := inTree(t, dir, "go vet ./...")
	must.Expect(t, err == nil, "%v\n%s\n%s", err, output, program)
}
