// Command price runs a bridgecheck against the bridges of this repository and prints what each run takes: requests, processor time of
// the harness and of the bridge, time on the wall and memory, beside the figures of the last release. With -against, another
// bridgecheck runs in turn with it, and the ratios are printed, which a busy machine changes less than it does times.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file has the figures of the last release, by bridge.
const file = "internal/tools/price/release.json"

// figures are what one run took. What a release did not report is 0.
type figures struct {
	Requests  int   `json:"requests"`
	HarnessMS int64 `json:"harness_cpu_ms"`
	BridgeMS  int64 `json:"bridge_cpu_ms"`
	WallMS    int64 `json:"wall_ms"`
	MemoryKB  int64 `json:"memory_kb"` // of the harness, with its mock, at its peak; 0 where the system does not tell
}

func (f figures) cpu() int64 { return f.HarnessMS + f.BridgeMS }

// run is one kind of bridge, and what has to be there for it.
type run struct {
	name    string
	needs   []string                               // a command that succeeds where it is there; nil: nothing
	prepare func(bc, dir string) ([]string, error) // the arguments of run, and where it runs
}

var runs = []run{
	{"in process", nil, func(string, string) ([]string, error) { return nil, nil }},
	{"reference by --exec", nil, func(bc, _ string) ([]string, error) { return []string{"--exec", bc + " bridge"}, nil }},
	{"Go starter", []string{"go", "version"}, func(bc, dir string) ([]string, error) {
		args, err := starter("go")(bc, dir)
		if err != nil {
			return nil, err
		}
		build := exec.Command("go", "build", "-o", "bridge", ".") // go run would count the compiler
		build.Dir = dir
		return append(args, "--exec", "./bridge"), said(build)
	}},
	{"Node starter", []string{"node", "--version"}, starter("node")},
	{"PHP starter", []string{"php", "--version"}, starter("php")},
	{"Python starter", []string{"python3", "--version"}, starter("python")},
	{"test/bridges/python", []string{"python3", "-c", "import starlette, uvicorn, httptools, aiohttp, jsonschema"}, func(_, dir string) ([]string, error) {
		return []string{"--config", "bridgecheck.yaml"}, os.CopyFS(dir, os.DirFS("test/bridges/python"))
	}},
}

func starter(language string) func(bc, dir string) ([]string, error) {
	return func(bc, dir string) ([]string, error) {
		return []string{"--config", "bridgecheck.yaml"}, said(exec.Command(bc, "init", language, dir))
	}
}

func main() {
	bc := flag.String("bridgecheck", "bin/bridgecheck", "the `program` that is measured")
	against := flag.String("against", "", "a `program` that runs in turn with it; empty: none")
	only := flag.String("only", "", "measure the bridges whose names contain this `text`; empty: all")
	write := flag.Bool("write", false, "write the figures into "+file+", as those of a release")
	flag.Parse()
	if err := measure(*bc, *against, *only, *write); err != nil {
		fmt.Fprintf(os.Stderr, "price: %v\n", err)
		os.Exit(1)
	}
}

func measure(bc, against, only string, write bool) error {
	released := map[string]figures{}
	if data, err := os.ReadFile(file); err == nil {
		if err := json.Unmarshal(data, &released); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, program := range []*string{&bc, &against} {
		if *program == "" {
			continue
		}
		absolute, err := filepath.Abs(*program)
		if err != nil {
			return err
		}
		*program = absolute
	}
	fmt.Printf("%-22s %9s %10s %10s %9s %9s\n", "", "requests", "harness", "bridge", "wall", "memory")
	for _, r := range runs {
		if !strings.Contains(r.name, only) {
			continue
		}
		if r.needs != nil {
			if err := exec.Command(r.needs[0], r.needs[1:]...).Run(); err != nil {
				fmt.Printf("%-22s SKIPPED: %s: %v\n", r.name, strings.Join(r.needs, " "), err)
				continue
			}
		}
		now, err := r.take(bc)
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		now.print(r.name)
		if before, known := released[r.name]; known {
			before.print("  last release")
		}
		if against != "" {
			before, err := r.take(against)
			if err != nil {
				return fmt.Errorf("%s with %s: %w", r.name, against, err)
			}
			before.print("  the other, now")
			fmt.Printf("%-22s requests %s, processor %s, wall %s, memory %s\n", "  ratio", ratio(int64(now.Requests), int64(before.Requests)),
				ratio(now.cpu(), before.cpu()), ratio(now.WallMS, before.WallMS), ratio(now.MemoryKB, before.MemoryKB))
		}
		released[r.name] = now
	}
	if !write {
		return nil
	}
	data, err := json.MarshalIndent(released, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// take runs a bridgecheck once and gives what it took. A run that gives no verdict is worth no figure.
func (r run) take(bc string) (figures, error) {
	parent, err := os.MkdirTemp("", "bridgecheck-price-")
	if err != nil {
		return figures{}, err
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "bridge")
	args, err := r.prepare(bc, dir)
	if err != nil {
		return figures{}, err
	}
	if _, err := os.Stat(dir); err != nil {
		dir = parent
	}
	report := filepath.Join(parent, "report")
	cmd := exec.Command(bc, slices.Concat([]string{"run", "--quiet", "--report-dir", report}, args)...)
	cmd.Dir = dir
	var f figures
	began := time.Now()
	if err := said(cmd, func() { f.MemoryKB = max(f.MemoryKB, peak(cmd.Process.Pid)) }); err != nil {
		return figures{}, err
	}
	f.WallMS = time.Since(began).Milliseconds()
	f.HarnessMS = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Milliseconds()
	data, err := os.ReadFile(filepath.Join(report, "report.json"))
	if err != nil {
		return figures{}, err
	}
	var found struct { // of an earlier release, it has no cost
		Cost *struct {
			Requests    int   `json:"requests"`
			BridgeCPUMS int64 `json:"bridge_cpu_ms"`
		} `json:"cost"`
	}
	if err := json.Unmarshal(data, &found); err != nil {
		return figures{}, err
	}
	if found.Cost != nil {
		f.Requests, f.BridgeMS = found.Cost.Requests, found.Cost.BridgeCPUMS
		f.HarnessMS -= f.BridgeMS // the system counts what the harness has started as the harness's
	}
	return f, nil
}

// said runs a command whose output is in the error, where there is one, and looks at it now and then.
func said(cmd *exec.Cmd, look ...func()) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Start()
	if err == nil {
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for running := true; running; {
			select {
			case err = <-ended:
				running = false
			case <-time.After(50 * time.Millisecond):
				for _, l := range look {
					l()
				}
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out.String())
	}
	return nil
}

// peak is the most memory that a process has taken by itself, in KiB; 0 where the system does not tell.
func peak(pid int) (kb int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	if _, most, told := strings.Cut(string(status), "VmHWM:"); told {
		_, _ = fmt.Sscan(most, &kb)
	}
	return kb
}

func (f figures) print(name string) {
	fmt.Printf("%-22s %9s %8.1f s %8s s %7.1f s %6s MB\n", name, known(int64(f.Requests), 1), float64(f.HarnessMS)/1000,
		known(f.BridgeMS, 1000), float64(f.WallMS)/1000, known(f.MemoryKB, 1024))
}

// known is a figure in a larger unit; a dash where it is not known.
func known(n int64, unit int64) string {
	switch {
	case n == 0:
		return "–"
	case unit == 1:
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.1f", float64(n)/float64(unit))
}

func ratio(now, before int64) string {
	if now == 0 || before == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", float64(now)/float64(before))
}
