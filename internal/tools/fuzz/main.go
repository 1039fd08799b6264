// Command fuzz runs every fuzz target of the module: `go run ./internal/tools/fuzz -time 20s` in the root of the
// repository. It finds the targets in the test files that this system builds, builds the tests of each package once, runs
// each target with one worker and as many targets side by side as -jobs says, and prints how many inputs each got and all
// of them together. It fails when a target fails, and says then how to run the input again.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	budget := flags.String("time", "20s", "how long each target runs, or how many inputs it gets, as go test -fuzztime takes it: 20s, 100000x")
	jobs := flags.Int("jobs", runtime.NumCPU(), "how many targets run side by side")
	only := flags.String("only", "", "run only the targets whose package and name, as printed, match this regular expression")
	list := flags.Bool("list", false, "print the targets and run none")
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if *jobs < 1 || flags.NArg() > 0 {
		return errors.New("usage: fuzz [-time 20s] [-jobs N] [-only REGEXP] [-list], with N of at least 1")
	}
	all, err := targets(".")
	if err != nil {
		return err
	}
	var chosen []target
	for _, t := range all {
		if wanted.MatchString(t.String()) {
			chosen = append(chosen, t)
		}
	}
	if len(chosen) == 0 {
		return errors.New("there is no such fuzz target")
	}
	if *list {
		for _, t := range chosen {
			fmt.Fprintln(out, t)
		}
		return nil
	}
	return fuzz(ctx, chosen, *budget, *jobs, out)
}

// target is a fuzz target.
type target struct {
	pkg, name  string // pkg is a path from the root: ./bridge/jsondoc
	dir        string // of the package
	importPath string
}

func (t target) String() string { return t.pkg + " " + t.name }

// targets finds the fuzz targets of the module in dir.
func targets(dir string) ([]target, error) {
	list := exec.Command("go", "list", "-json=Dir,ImportPath,TestGoFiles,XTestGoFiles", "./...")
	list.Dir, list.Stderr = dir, os.Stderr
	listed, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w", err)
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var all []target
	for packages := json.NewDecoder(strings.NewReader(string(listed))); ; {
		var p struct {
			Dir, ImportPath           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("list the packages: %w", err)
		}
		pkg, err := filepath.Rel(root, p.Dir)
		if err != nil {
			return nil, err
		}
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
					all = append(all, target{"./" + filepath.ToSlash(pkg), f.Name.Name, p.Dir, p.ImportPath})
				}
			}
		}
	}
}

// fuzz runs the targets and prints what each of them did. Tests are built one package after the other, while targets run:
// side by side the builds would compile the packages that they share each for itself.
func fuzz(ctx context.Context, chosen []target, budget string, jobs int, out io.Writer) error {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("find the cache: %w", err)
	}
	temp, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var total int64
	var failed []target
	places := make(chan struct{}, jobs)
	began := time.Now()
	var built, program string // the package that was built last, and its tests
	for _, t := range chosen {
		if t.pkg != built {
			built, program = t.pkg, filepath.Join(temp, strings.ReplaceAll(t.pkg[2:]+".test.exe", "/", "_"))
			build := exec.CommandContext(ctx, "go", "test", "-c", "-fuzz", ".", "-ldflags", "-s -w", "-o", program, ".")
			build.Dir = t.dir
			if text, err := build.CombinedOutput(); err != nil {
				wg.Wait()
				return fmt.Errorf("build the tests of %s: %w\n%s", t.pkg, err, text)
			}
		}
		inputsDir := filepath.Join(strings.TrimSpace(string(cache)), "fuzz", filepath.FromSlash(t.importPath)) // as go test -fuzz has it
		run := program
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			text, err := t.fuzz(ctx, run, inputsDir, budget)
			n := inputs(text)
			mu.Lock()
			defer mu.Unlock()
			total += n
			fmt.Fprintf(out, "%11d inputs  %s\n", n, t)
			if err != nil {
				failed = append(failed, t)
				fmt.Fprintf(out, "\nFAILED: %s (%v)\n%s\n", t, err, text)
			}
		})
	}
	wg.Wait()
	fmt.Fprintf(out, "%11d inputs in all, to %d targets in %s\n", total, len(chosen), time.Since(began).Round(time.Second))
	if len(failed) == 0 {
		return nil
	}
	lines := fmt.Sprintf("%d of %d targets failed. Run their inputs again by", len(failed), len(chosen))
	for _, t := range failed {
		lines += fmt.Sprintf("\n  go test -run '^%s$' %s", t.name, t.pkg)
	}
	return errors.New(lines + "\nand commit the files in testdata/fuzz with the fix")
}

// fuzz runs one target of a test program and returns what it printed. An input that fails is written below testdata/fuzz of
// the package, where the ordinary tests run it, too.
func (t target) fuzz(ctx context.Context, program, inputsDir, budget string) (string, error) {
	command := []string{program}
	if nice, err := exec.LookPath("nice"); err == nil {
		command = []string{nice, program} // the tests that are still to be built come first
	}
	command = append(command, "-test.paniconexit0", "-test.run", "^$", "-test.fuzz", "^"+t.name+"$", "-test.fuzztime", budget,
		"-test.fuzzminimizetime", "1x", "-test.parallel", "1", "-test.fuzzcachedir", inputsDir)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = t.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	text, err := cmd.CombinedOutput()
	switch {
	case err != nil && onlyEnded(string(text)):
		err = nil
	case err == nil && inputs(string(text)) == 0:
		err = errors.New("it got no input")
	}
	return string(text), err
}

// onlyEnded reports whether a target failed because its time was up while a worker still started (golang/go#48591), and
// not because of an input, which it would have written to a file.
func onlyEnded(text string) bool {
	return strings.Contains(text, "\n    context deadline exceeded\n") && !strings.Contains(text, "Failing input written to") &&
		!strings.Contains(text, "panic:") && inputs(text) > 0
}

var progress = regexp.MustCompile(`(?m)^fuzz: elapsed: .* (?:execs: |coverage: )(\d+)`)

// inputs is how many inputs a target got, as its last line of progress says: generated ones, or, where the time was
// too short for any, the known ones that it starts with.
func inputs(text string) int64 {
	lines := progress.FindAllStringSubmatch(text, -1)
	if len(lines) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(lines[len(lines)-1][1], 10, 64) // digits, as they matched
	return n
}
