// Command mutation asks how many faults a run finds that nobody has chosen: mutation tools change the source of a starter, and
// `bridgecheck run --fail-fast --strict` tests each change. In the Node starter Stryker finds the places and what to put there,
// in the Go starter gremlins does. A sample by seed is tested; what has been tested already is read from the file of results,
// so that an interrupted run goes on. Survivors stand in reviewed.yaml with the reason, or are holes.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// here is the directory of this program, from the top of the repository.
const here = "internal/tools/mutation"

// gremlins is the tool that mutates the Go starter.
const gremlins = "github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0"

// limit is how long one run may take.
const limit = 10 * time.Minute

// byTheClock is a SHOULD that the starters fail now and then, as busy as the machine is: it would count as a catch.
const byTheClock = "load/large-catalogue"

// A mutant is one change of a starter's source.
type mutant struct {
	File   string `json:"file"`
	Line   int    `json:"line"`   // from 1
	Column int    `json:"column"` // from 1
	Kind   string `json:"kind"`   // as the tool names it
	By     string `json:"by"`     // what stands there now
	Switch string `json:"switch,omitempty"`
}

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d:%d %s %s", m.File, m.Line, m.Column, m.Kind, m.By)
}

// A result is what a run said of a mutant.
type result struct {
	Mutant string   `json:"mutant"`
	Code   string   `json:"code"` // the line that is changed
	Fails  []string `json:"fails,omitempty"`
	Caught bool     `json:"caught"`
	None   bool     `json:"none,omitempty"` // it does not compile, so that there is no such bridge
	Said   string   `json:"said"`           // the verdict
}

// A starter is a bridge whose source is mutated.
type starter struct {
	// list finds the mutants of the source in dir, which it may rewrite.
	list func(ctx context.Context, dir string) ([]mutant, error)
	// apply makes the bridge with a mutant, and gives the command that starts it. An error says that there is no such bridge.
	apply func(ctx context.Context, dir string, m mutant) (command string, err error)
}

var starters = map[string]starter{
	"node": {listNode, func(_ context.Context, _ string, m mutant) (string, error) {
		return "env __STRYKER_ACTIVE_MUTANT__=" + m.Switch + " node bridge.js", nil
	}},
	"go": {listGo, applyGo},
}

func main() {
	name := flag.String("starter", "node", "the starter that is mutated: node or go")
	bc := flag.String("bridgecheck", "bin/bridgecheck", "the `program` that tests")
	sample := flag.Int("sample", 200, "how many mutants are tested; 0: all")
	seed := flag.Uint64("seed", 1, "which ones")
	write := flag.Bool("write", false, "put the figures into "+trustPage)
	results := flag.String("results", "", "the `file` of results, which a run goes on with; empty: bin/mutation-STARTER.jsonl")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	figures, err := run(ctx, *name, *bc, *sample, *seed, cmp.Or(*results, "bin/mutation-"+*name+".jsonl"))
	if err == nil && *write {
		err = writeFigures(*name, figures)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "mutation: %v\n", err)
		os.Exit(1)
	}
}

// run tests the mutants and returns the figures in a line.
func run(ctx context.Context, name, bc string, sample int, seed uint64, file string) (figures string, err error) {
	s, ok := starters[name]
	if !ok {
		return "", fmt.Errorf("-starter %q: want node or go", name)
	}
	if bc, err = filepath.Abs(bc); err != nil {
		return "", err
	}
	reviewed, err := readReviewed(filepath.Join(here, "reviewed.yaml"), name)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "bridgecheck-mutation-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	original, source := filepath.Join(dir, "original"), filepath.Join(dir, "bridge")
	for _, to := range []string{original, source} {
		if err := succeed(exec.CommandContext(ctx, bc, "init", name, to)); err != nil {
			return "", err
		}
	}
	lines, err := readLines(source)
	if err != nil {
		return "", err
	}
	all, err := s.list(ctx, source)
	if err != nil {
		return "", err
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if sample > 0 && sample < len(all) {
		fmt.Printf("%d of %d mutants, by seed %d\n", sample, len(all), seed)
		all = all[:sample]
	}
	tested, err := readResults(file)
	if err != nil {
		return "", err
	}
	// What the starter leaves open of the SHOULDs is no fault of a mutant.
	known := filepath.Join(dir, "known.yaml")
	plain := exec.CommandContext(ctx, bc, "run", "--config", "bridgecheck.yaml", "--skip", byTheClock, "--quiet", "--strict",
		"--write-baseline", known, "--report-dir", filepath.Join(dir, "report"))
	plain.Dir = original
	said, _ := plain.CombinedOutput() // it fails by its warnings
	if _, err := os.Stat(known); err != nil {
		return "", fmt.Errorf("the starter without a mutant: %s", said)
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	defer out.Close()
	var caught, excepted, none int
	var holes []result
	times := map[string]int{}
	for i, m := range all {
		code, id := strings.TrimSpace(lines[m.File][m.Line-1]), m.String()
		if times[id]++; times[id] > 1 { // a && b and its a begin at one place, and both may become true
			id = fmt.Sprintf("%s (%d)", id, times[id])
		}
		r, done := tested[id+code]
		if !done {
			if r, err = s.test(ctx, bc, source, known, m); err != nil {
				return "", fmt.Errorf("%s: %w", m, err)
			}
			r.Mutant, r.Code = id, code
			if err := json.NewEncoder(out).Encode(r); err != nil {
				return "", err
			}
			fmt.Printf("%d/%d %s: %s %s\n", i+1, len(all), m, r.Said, strings.Join(r.Fails, " "))
		}
		switch {
		case r.None:
			none++
		case r.Caught:
			caught++
		case reviewed[change{m.Kind, m.By, code}]:
			excepted++
		default:
			holes = append(holes, r)
		}
	}
	for _, r := range holes {
		fmt.Printf("SURVIVED %s\n         %s\n         %s\n", r.Mutant, r.Code, r.Said)
	}
	counted := len(all) - excepted - none
	figures = fmt.Sprintf("Of %d mutants of the %s starter, %d do not compile and %d are equivalent or silent by review; "+
		"of the other %d, %d are caught (%.1f %%).", len(all), name, none, excepted, counted, caught, 100*float64(caught)/float64(max(1, counted)))
	fmt.Println(figures)
	return figures, nil
}

// trustPage is the page on trust, from the top of the repository; trustMark is the line that the figures of the starters come after.
const (
	trustPage = "docs/trust.md"
	trustMark = "`make mutation WRITE=1` writes what it counts:\n"
)

// writeFigures puts the line of a starter into the page on trust.
func writeFigures(name, figures string) error {
	page, err := os.ReadFile(trustPage)
	if err != nil {
		return err
	}
	before, after, ok := strings.Cut(string(page), trustMark)
	if !ok {
		return fmt.Errorf("%s lacks the line %q", trustPage, trustMark)
	}
	old := regexp.MustCompile(`\nOf \d+ mutants of the ` + name + ` starter, .*\n`)
	return os.WriteFile(trustPage, []byte(before+trustMark+"\n"+figures+"\n"+old.ReplaceAllString(after, "")), 0o644)
}

// test runs bridgecheck against the starter with a mutant.
func (s starter) test(ctx context.Context, bc, source, known string, m mutant) (result, error) {
	dir, err := os.MkdirTemp("", "bridgecheck-mutant-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	copied := filepath.Join(dir, "bridge")
	if err := os.CopyFS(copied, os.DirFS(source)); err != nil {
		return result{}, err
	}
	command, err := s.apply(ctx, copied, m)
	if err != nil {
		return result{None: true, Said: err.Error()}, ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	report := filepath.Join(dir, "report")
	cmd := exec.CommandContext(limited, bc, "run", "--config", "bridgecheck.yaml", "--skip", byTheClock, "--exec", command,
		"--baseline", known, "--fail-fast", "--strict", "--quiet", "--report-dir", report)
	cmd.Dir = copied
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return result{}, ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return result{}, err
	}
	said := strings.Split(strings.TrimSpace(string(output)), "\n")
	r := result{Said: said[len(said)-1], Caught: cmd.ProcessState.ExitCode() == 1 || cmd.ProcessState.ExitCode() == 3}
	var found struct {
		Results []struct{ ID, Verdict string }
	}
	if data, err := os.ReadFile(filepath.Join(report, "report.json")); err == nil {
		if err := json.Unmarshal(data, &found); err != nil {
			return result{}, err
		}
	}
	for _, f := range found.Results {
		if f.Verdict == "fail" || f.Verdict == "warn" {
			r.Fails = append(r.Fails, f.ID)
		}
	}
	return r, nil
}

// listNode rewrites the starter so that it holds all mutants, each behind a switch.
func listNode(ctx context.Context, dir string) ([]mutant, error) {
	cmd := exec.CommandContext(ctx, "node", filepath.Join(here, "instrument.mjs"), dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w (npm ci in %s installs what it needs)", cmd, err, here)
	}
	var all []mutant
	for line := range bytes.Lines(out) {
		var m mutant
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// swaps are what gremlins puts in the place of an operator, by the kind of the mutant: pairs of what stands there and what comes.
var swaps = map[string]string{
	"CONDITIONALS_BOUNDARY":   "< <= <= < > >= >= >",
	"CONDITIONALS_NEGATION":   "== != != == <= > < >= >= < > <=",
	"ARITHMETIC_BASE":         "+ - - + * / / * % *",
	"INCREMENT_DECREMENT":     "++ -- -- ++",
	"INVERT_LOGICAL":          "&& || || &&",
	"INVERT_LOOPCTRL":         "break continue continue break",
	"INVERT_NEGATIVES":        "- +",
	"INVERT_ASSIGNMENTS":      "+= -= -= += *= /= /= *= %= *=",
	"INVERT_BITWISE":          "& | | & ^ & &^ & << >> >> <<",
	"INVERT_BWASSIGN":         "&= |= |= &= ^= &= &^= &= <<= >>= >>= <<=",
	"REMOVE_SELF_ASSIGNMENTS": "+= = -= = *= = /= = %= = &= = |= = ^= = <<= = >>= =",
}

// listGo asks gremlins for the mutants, those included that the starter's own tests do not reach.
func listGo(ctx context.Context, dir string) ([]mutant, error) {
	bin := filepath.Dir(dir)
	list := filepath.Join(bin, "gremlins.json")
	install := exec.CommandContext(ctx, "go", "install", gremlins)
	install.Env = append(os.Environ(), "GOBIN="+bin)
	if err := succeed(install); err != nil {
		return nil, err
	}
	args := []string{"unleash", "--dry-run", "--output", list}
	for kind := range swaps {
		args = append(args, "--"+strings.ToLower(strings.ReplaceAll(kind, "_", "-")))
	}
	unleash := exec.CommandContext(ctx, filepath.Join(bin, "gremlins"), append(args, ".")...)
	unleash.Dir = dir
	if err := succeed(unleash); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	var found struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type         string
				Line, Column int
			}
		}
	}
	if err := json.Unmarshal(data, &found); err != nil {
		return nil, err
	}
	lines, err := readLines(dir)
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, f := range found.Files {
		for _, at := range f.Mutations {
			m := mutant{File: f.Name, Line: at.Line, Column: at.Column, Kind: at.Type}
			if _, m.By, err = swapped(lines[f.Name][at.Line-1], m); err != nil {
				return nil, err
			}
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b mutant) int { return cmp.Compare(a.String(), b.String()) }) // gremlins lists them in any order
	return all, nil
}

// swapped is a line with the operator changed, and what stands there now.
func swapped(line string, m mutant) (changed, by string, err error) {
	pairs := strings.Fields(swaps[m.Kind])
	best := -1
	for i := 0; i < len(pairs); i += 2 {
		if strings.HasPrefix(line[m.Column-1:], pairs[i]) && (best < 0 || len(pairs[i]) > len(pairs[best])) {
			best = i
		}
	}
	if best < 0 {
		return "", "", fmt.Errorf("%s: no operator of this kind stands there", m)
	}
	return line[:m.Column-1] + pairs[best+1] + line[m.Column-1+len(pairs[best]):], pairs[best+1], nil
}

func applyGo(ctx context.Context, dir string, m mutant) (string, error) {
	file := filepath.Join(dir, m.File)
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	lines := strings.Split(string(data), "\n")
	if lines[m.Line-1], _, err = swapped(lines[m.Line-1], m); err != nil {
		return "", err
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", "bridge", ".")
	build.Dir = dir
	if err := build.Run(); err != nil {
		return "", errors.New("does not compile")
	}
	return "./bridge", nil
}

// readLines reads the source files of a directory, by name.
func readLines(dir string) (map[string][]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	lines := map[string][]string{}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext == ".js" || ext == ".go" {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			lines[e.Name()] = strings.Split(string(data), "\n")
		}
	}
	return lines, nil
}

func readResults(file string) (map[string]result, error) {
	tested := map[string]result{}
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return tested, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		tested[r.Mutant+r.Code] = r
	}
	return tested, nil
}

// A change is what a mutant does to a line, wherever that stands.
type change struct{ kind, by, code string }

// readReviewed reads the survivors that are no holes.
func readReviewed(file, name string) (map[change]bool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []struct {
		Starter, Kind, By, Code string
		Is                      string // equivalent or silent
		Why                     string
	}
	if err := yaml.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	reviewed := map[change]bool{}
	for i, r := range all {
		if r.Is != "equivalent" && r.Is != "silent" || r.Why == "" {
			return nil, fmt.Errorf("%s: entry %d: is must be equivalent or silent, and why must say the reason", file, i+1)
		}
		if r.Starter == name {
			reviewed[change{r.Kind, r.By, r.Code}] = true
		}
	}
	return reviewed, nil
}

// succeed runs a command whose output is in the error, where there is one.
func succeed(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", cmd, err, out)
	}
	return nil
}
