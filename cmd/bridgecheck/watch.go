package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/reports"
)

// commandsFiles is the value of --watch where the user names no directory.
const commandsFiles = "the files of --exec"

// settleTime is how long no file changes until a round begins: editors write several files, and some of them twice.
const settleTime = 100 * time.Millisecond

// fewClauses is how many clauses one bridge tests sooner than several.
const fewClauses = 8

// firstClause is tested first where nothing has failed: it shows at once that the bridge is up.
const firstClause = "list/answers-json"

// unwatched are directories whose files no author writes, beside those whose names begin with a dot.
var unwatched = []string{"node_modules", "vendor", "__pycache__"}

// watcher tests again when files change, and shows what turned green and red.
type watcher struct {
	cmd   *cobra.Command
	flags *runFlags
	out   io.Writer

	mu    sync.Mutex
	known map[string]reports.Verdict // as seen last
	began time.Time                  // of the round; zero: its first verdict was shown
}

// watch tests until the context of the command ends, anew whenever a file changes.
func (f *runFlags) watch(cmd *cobra.Command) error {
	switch {
	case f.Exec == "":
		return usagef("--watch starts the bridge again when its files change: give --exec too")
	case f.Keep || f.Shard != "" || f.RerunFailed != "" || f.JSON || f.List || f.WriteBaseline != "":
		return usagef("--watch shows what changes until Ctrl-C: leave --keep, --shard, --rerun-failed, --json, --list and --write-baseline out")
	}
	if err := f.unnamed(cmd); err != nil { // the rounds are quiet
		return err
	}
	files, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch files: %w", err)
	}
	defer files.Close()
	own, err := filepath.Abs(f.ReportDir)
	if err != nil {
		return fmt.Errorf("watch files: %w", err)
	}
	roots, err := watched(f.Exec, f.Watch)
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := addTree(files, root, own); err != nil {
			return usagef("--watch: %s cannot be watched: %s", root, reason(err))
		}
	}
	w := &watcher{cmd: cmd, flags: f, out: cmd.OutOrStdout(), known: map[string]reports.Verdict{}}
	if report, err := reports.ReadFile(f.ReportDir); err == nil { // without one, nothing is known
		w.settle(report)
	}
	w.say("watching %s; Ctrl-C ends", strings.Join(roots, ", "))
	for {
		ctx, cancel := context.WithCancel(cmd.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.round(ctx) }()
		changed := nextChange(cmd.Context(), files, own)
		cancel()
		<-done // the bridge has ended
		if changed == "" {
			return nil
		}
		w.say("\n%s changed", changed)
	}
}

// watched are the directories to watch: of the files that the command names, and those that the user names.
func watched(command string, named []string) ([]string, error) {
	var roots []string
	add := func(dir string) error {
		path, err := filepath.Abs(dir)
		if err == nil && !slices.Contains(roots, path) {
			roots = append(roots, path)
		}
		return err
	}
	words, err := splitCommand(command)
	if err != nil {
		return nil, usagef("--exec %q cannot be split into words: %v", command, err)
	}
	for _, word := range words {
		if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() {
			if err := add(filepath.Dir(word)); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range named {
		if name == commandsFiles {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, usagef("--watch: %s: %s", name, reason(err))
		}
		if !info.IsDir() {
			name = filepath.Dir(name)
		}
		if err := add(name); err != nil {
			return nil, err
		}
	}
	if len(roots) == 0 {
		return nil, usagef("--watch: the command %q names no file: give the directory, as --watch=DIR", command)
	}
	return roots, nil
}

// addTree watches a directory and those below it, but for those that no author writes and for the report's own.
func addTree(files *fsnotify.Watcher, root, own string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); path != root && (strings.HasPrefix(name, ".") || slices.Contains(unwatched, name)) || path == own {
			return filepath.SkipDir
		}
		return files.Add(path)
	})
}

// nextChange waits until a file has changed and none changes any more; "": the context has ended.
func nextChange(ctx context.Context, files *fsnotify.Watcher, own string) string {
	changed := ""
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-files.Errors: // events were lost: something has changed
			changed, settled = "a file", time.After(settleTime)
		case e := <-files.Events:
			if e.Op == fsnotify.Chmod || e.Name == own || strings.HasPrefix(e.Name, own+string(filepath.Separator)) || slices.Contains(unwatched, filepath.Base(e.Name)) {
				continue
			}
			info, err := os.Stat(e.Name)
			if err == nil && ours(info) {
				continue
			}
			if err == nil && info.IsDir() {
				_ = addTree(files, e.Name, own) // one that is gone again has no files
			}
			changed, settled = e.Name, time.After(settleTime)
		case <-settled:
			return changed
		}
	}
}

// ours reports whether a file is where our own output goes.
func ours(info fs.FileInfo) bool {
	return slices.ContainsFunc([]*os.File{os.Stdout, os.Stderr}, func(f *os.File) bool {
		own, err := f.Stat()
		return err == nil && os.SameFile(own, info)
	})
}

// round tests what failed, then the areas of that, then all that the flags select; each with a bridge of its own, for the
// report is of the last.
func (w *watcher) round(ctx context.Context) {
	w.mu.Lock()
	w.began = time.Now()
	var failed, areas []string
	for id, verdict := range w.known {
		if red(verdict) {
			failed = append(failed, id)
			area, _, _ := strings.Cut(id, "/")
			areas = append(areas, area)
		}
	}
	w.mu.Unlock()
	slices.Sort(failed)
	slices.Sort(areas)
	if failed == nil && !slices.Contains(w.flags.Claims, "-tools") && w.flags.Config == "" {
		failed = []string{firstClause}
	}
	steps := [][]string{failed, slices.Compact(areas), nil}
	if w.flags.Only != nil || w.flags.Skip != nil {
		if steps = [][]string{failed, nil}; areas == nil {
			steps = [][]string{nil}
		}
	}
	for i, only := range steps {
		last := i == len(steps)-1
		if only == nil && !last {
			continue
		}
		if err := w.test(ctx, only, last); ctx.Err() != nil {
			return
		} else if err != nil {
			w.say("bridgecheck: %v", err)
			break
		}
	}
	w.say("waiting for a change")
}

// test is one run; one that is not the last leaves no report.
func (w *watcher) test(ctx context.Context, only []string, last bool) error {
	dir := w.flags.ReportDir
	if !last {
		var err error
		if dir, err = os.MkdirTemp("", "bridgecheck-*"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	run := &runFlags{seen: w.seen}
	cmd := run.command()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	var headline bytes.Buffer
	cmd.SetOut(&headline)
	cmd.SetErr(w.cmd.ErrOrStderr())
	args := append(w.arguments(only), "--quiet", "--report-dir="+dir)
	if len(only) > 0 && len(only) <= fewClauses && !w.cmd.Flags().Changed("jobs") {
		args = append(args, "--jobs=1") // one bridge is up sooner than several
	}
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if last && ctx.Err() == nil {
		lines := strings.Split(strings.TrimSpace(headline.String()), "\n")
		w.say("%s", lines[len(lines)-1]) // what fails is said with what changed
	}
	if report, err := reports.ReadFile(dir); err == nil && ctx.Err() == nil {
		w.settle(report)
	}
	if verdict := exitCode(0); errors.As(err, &verdict) {
		return nil
	}
	return err
}

// arguments are those of the user's run, without what watch decides.
func (w *watcher) arguments(only []string) []string {
	var args []string
	w.cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "watch", "quiet", "verbose", "report-dir":
			return
		case "only":
			if only != nil {
				return
			}
		}
		if list, several := flag.Value.(pflag.SliceValue); several {
			for _, value := range list.GetSlice() {
				args = append(args, "--"+flag.Name+"="+value)
			}
			return
		}
		args = append(args, "--"+flag.Name+"="+flag.Value.String())
	})
	for _, id := range only {
		args = append(args, "--only="+id)
	}
	return args
}

func red(v reports.Verdict) bool { return v == reports.Fail || v == reports.Error }

// seen shows a verdict of a run that is under way where it is another than before.
func (w *watcher) seen(r reports.Result) {
	if r.Verdict == reports.NotApplicable || r.Verdict == reports.NotTestable {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.began.IsZero() {
		fmt.Fprintf(w.out, "first verdict after %.1f s\n", time.Since(w.began).Seconds())
		w.began = time.Time{}
	}
	before, known := w.known[r.ID]
	w.known[r.ID] = r.Verdict
	switch {
	case red(r.Verdict) && (!known || !red(before)):
		fmt.Fprintf(w.out, "red    %s  %s\n", r.ID, terminal.Line(r.Message, 200))
	case known && red(before) && !red(r.Verdict):
		fmt.Fprintf(w.out, "green  %s\n", r.ID)
	}
}

// settle takes the verdicts of a whole report over: the culprit rule may have changed some that were shown.
func (w *watcher) settle(report *reports.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range report.Results {
		if red(r.Verdict) || r.Verdict == reports.Pass || r.Verdict == reports.Warn {
			w.known[r.ID] = r.Verdict
		}
	}
}

func (w *watcher) say(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintln(w.out, terminal.Escape(fmt.Sprintf(format, args...)))
}
