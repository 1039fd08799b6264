package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/processtree"
	"github.com/bridgecheck/bridgecheck/internal/program"
)

// A statement is what a page says (lines that begin with "#>", with an empty one between two places) and the commands of bash that
// fail where it is not true.
type statement struct {
	line        int
	says, proof string
}

// statements returns the rows of a file, and the commands before the first, which start what all rows use.
func statements(text string) (before string, all []statement) {
	inside := false // the line before is part of what the page says
	for i, line := range strings.SplitAfter(text, "\n") {
		said, isSaid := strings.CutPrefix(line, "#>")
		switch last := len(all) - 1; {
		case isSaid && inside:
			all[last].says += said
		case isSaid:
			all = append(all, statement{line: i + 1, says: said})
		case last < 0:
			before += line
		default:
			all[last].proof += line
		}
		inside = isSaid
	}
	return before, all
}

// TestStatements looks for what testdata/statements quotes in the pages of the same names, and runs what proves it, with programs
// that stand: one shell for each page, a subshell for each row. testdata/prelude.bash has the words of the rows.
func TestStatements(t *testing.T) {
	all, files := pages(t), must.Get(filepath.Glob("testdata/statements/*.bash"))(t)
	must.Assert(t, len(files) > 0, "testdata/statements is empty")
	group := processtree.NewGroup()
	t.Cleanup(func() { group.Close(time.Second) }) // when all pages have ended
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".bash")
		page := "docs/" + name + ".md"
		if name == "README" {
			page = "README.md"
		}
		plain := strings.Join(strings.Fields(all[page]), " ")
		before, rows := statements(string(must.Get(os.ReadFile(file))(t)))
		for _, row := range rows {
			for said := range strings.SplitSeq(row.says, "\n\n") {
				must.Expect(t, strings.Contains(plain, strings.Join(strings.Fields(said), " ")), "%s:%d: %s does not say:%s", file, row.line, page, said)
			}
			must.Expect(t, strings.TrimSpace(row.proof) != "", "%s:%d: nothing proves it", file, row.line)
		}
		t.Run(name, func(t *testing.T) {
			must.Need(t, !testing.Short(), "SKIPPED: -short: nothing is proved")
			for _, tool := range []string{"bash", "curl"} {
				_, err := exec.LookPath(tool)
				must.Need(t, err == nil, "SKIPPED: %v", err)
			}
			t.Parallel()
			prove(t, group, file, before, rows)
		})
	}
}

// prove runs the rows of a file, one after the other.
func prove(t *testing.T, group *processtree.Group, file, before string, rows []statement) {
	t.Helper()
	prelude, root := must.Get(os.ReadFile("testdata/prelude.bash"))(t), must.Get(filepath.Abs(repository))(t)
	script := string(prelude) + "set -e\n" + before + "\nset +e\n"
	for i, row := range rows {
		script += fmt.Sprintf("(trap 'kill $(jobs -p) 2>/dev/null || true' EXIT; trap 'echo it fails: \"$BASH_COMMAND\"' ERR; set -e\n%s) >row-%d.log 2>&1; echo $? >row-%d\n", row.proof, i, i)
	}
	dir := t.TempDir()
	must.Do(t, os.Symlink(program.Build(t), filepath.Join(dir, "bridgecheck")))
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "ROOT=" + root}
	log := must.Get(os.Create(filepath.Join(dir, "log")))(t) // a pipe would wait for what the rows serve
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	tree := must.Get(group.Start(cmd))(t)
	defer tree.Stop(time.Second)
	err := cmd.Wait()
	printed := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name)) // the file of a row that was not run is not there
		return string(text)
	}
	for i, row := range rows {
		if said := printed(fmt.Sprintf("row-%d.log", i)); strings.Contains(said, "NOT TESTED") {
			t.Logf("%s:%d: %s", file, row.line, said)
		}
		must.Expect(t, printed(fmt.Sprintf("row-%d", i)) == "0\n", "%s:%d: it is not true that%s%s", file, row.line, row.says, printed(fmt.Sprintf("row-%d.log", i)))
	}
	must.Expect(t, err == nil, "%s: %v\n%s", file, err, printed("log"))
}
