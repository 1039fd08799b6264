package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/suites/contract"
)

var (
	block   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	span    = regexp.MustCompile("`([^`\n]+)`")
	flags   = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]+)`)
	own     = regexp.MustCompile(`^(?:\w+=\S+ )*(?:bin/)?bridgecheck (.*)`)
	target  = regexp.MustCompile(`^make ([a-z-]+)`)
	clauses = regexp.MustCompile(`^([a-z-]+)/[a-z0-9*-]+$`)
	inTree  = regexp.MustCompile(`\b(?:bridge|cmd|docs|examples|fixtures|internal|mockdrupal|packaging|reports|suites|test)/[\w./-]*\w`)
	word    = regexp.MustCompile(`[A-Za-z_][\w-]*\w`)
)

// foreign are words of other programs, and names that a reader is to replace.
var foreign = strings.Fields("upload_max_filesize a2enmod MaxRequestWorkers between_bytes_timeout ip_hash claude_desktop_config systemctl maxretry findtime " +
	"yaml-language-server project-type drupal11 docroot create-project recommended-project account-name sqlite fixtures-module PHP_CLI_SERVER_WORKERS " +
	"CLAUSE-N auth-KIND role_X check-k3x9qd-80001 AGENT2_TOKEN reports/format/lines.go health-cmd db-url zend assertions")

// What a sentence has in code exists: a command and its flags, a clause, a file of the tree, a target of make, and each other word in
// the sources.
func TestCodeInProse(t *testing.T) {
	commands, sources := flagsOfCommands(t), sourcesOf(t)
	c := must.Get(contract.Load())(t)
	missing := func(code string) string {
		if m := clauses.FindStringSubmatch(code); m != nil && slices.Contains(c.Areas(), m[1]) {
			if ids, err := c.Match(code); err != nil || len(ids) == 0 {
				return "no clause is named so"
			}
			return ""
		}
		for _, file := range inTree.FindAllString(code, -1) {
			if _, err := os.Stat(filepath.Join(repository, file)); err != nil && !slices.Contains(foreign, file) {
				return err.Error()
			}
		}
		if m := target.FindStringSubmatch(code); m != nil && !strings.Contains(sources, "\n"+m[1]+":") {
			return "the Makefile has no target " + m[1]
		}
		command, said := "", own.FindStringSubmatch(code)
		if said != nil {
			code = said[1]
		}
		for w := range strings.FieldsSeq(code) {
			longer := strings.TrimSpace(command + " " + w)
			if commands[longer] == nil {
				break
			}
			command = longer
		}
		switch {
		case said != nil && command == "":
			return "bridgecheck has no such command"
		case command == "" && !strings.HasPrefix(code, "--"):
			return "" // nothing of the program's
		}
		for _, m := range flags.FindAllStringSubmatch(code, -1) {
			if !commands[command][m[1]] && !slices.Contains(foreign, m[1]) {
				return "bridgecheck " + command + " has no flag --" + m[1]
			}
		}
		return ""
	}
	checked := 0
	for page, text := range pages(t) {
		text = block.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
		for n, line := range strings.Split(text, "\n") {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				checked++
				code := strings.ReplaceAll(m[1], `\|`, "|")
				must.Equal(t, missing(code), "", "%s:%d: `%s`", page, n+1, code)
				for _, w := range word.FindAllString(inTree.ReplaceAllString(code, ""), -1) {
					w = strings.TrimSuffix(w, "_FILE")
					if key, ok := strings.CutPrefix(w, "BRIDGE_"); ok {
						w = strings.ToLower(key) // of which the variable's name is made
					}
					must.Expect(t, strings.Contains(sources, w) || slices.Contains(foreign, w),
						"%s:%d: `%s`: the sources have no %s; a word of another program is to be added to foreign", page, n+1, code, w)
				}
			}
		}
	}
	t.Logf("%d were checked; %d words are not the project's: %s", checked, len(foreign), strings.Join(foreign, ", "))
}

// flagsOfCommands are the flags of each command by its name, and of all under "".
func flagsOfCommands(t *testing.T) map[string]map[string]bool {
	t.Helper()
	dir := t.TempDir()
	must.Get(exec.Command(program.Build(t), "man", dir).Output())(t)
	all := map[string]map[string]bool{"": {}}
	flag := regexp.MustCompile(`--([a-z][a-z-]+)\\fP`)
	for _, file := range must.Get(filepath.Glob(filepath.Join(dir, "*.1")))(t) {
		name := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(file), ".1"), "bridgecheck")
		name = strings.TrimSpace(strings.ReplaceAll(name, "-", " "))
		if all[name] == nil {
			all[name] = map[string]bool{}
		}
		for _, m := range flag.FindAllStringSubmatch(string(must.Get(os.ReadFile(file))(t)), -1) {
			all[name][m[1]], all[""][m[1]] = true, true
		}
	}
	return all
}

// sourcesOf is the text of the repository but for its pages, and for this file, which has the foreign words.
func sourcesOf(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	must.Do(t, filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "bin", "dist", "node_modules"}, d.Name()) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() || filepath.Ext(path) == ".md" || d.Name() == "prose_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		all.Write(append(text, '\n'))
		return err
	}))
	return all.String()
}
