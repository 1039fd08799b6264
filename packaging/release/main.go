// Command release builds what people install, from the source to `dist/`: `make dist` and `make packages` call it in the root
// of the repository.
//
//	release archives  an archive for each platform, its SBOM, and checksums.txt
//	release packages  the archives, the npm packages and the Composer package
//
// Its invariant: the same commit, version and Go give the same bytes, wherever and whenever it runs.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// release is what is built, and from what.
type release struct {
	version   string // without a v
	commit    string
	time      time.Time // of the commit; all files have it
	out       string
	binaries  string // a directory, for OS_ARCH/bridgecheck
	platforms []platform
}

// platform is a system and a processor as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// binary is the name of the program on the platform.
func (p platform) binary() string {
	if p.os == "windows" {
		return "bridgecheck.exe"
	}
	return "bridgecheck"
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("say what to build: archives or packages")
	}
	var r release
	var platforms string
	var epoch int64
	flags := flag.NewFlagSet("release "+args[0], flag.ExitOnError)
	flags.StringVar(&r.version, "version", "", "version, as git describe gives it: v1.2.3")
	flags.StringVar(&r.commit, "commit", "", "commit, its whole hash")
	flags.Int64Var(&epoch, "epoch", 0, "time of the commit, in seconds since 1970")
	flags.StringVar(&r.out, "out", "dist", "where it is written")
	flags.StringVar(&r.binaries, "binaries", "bin/dist", "directory of the binaries")
	flags.StringVar(&platforms, "platforms", "", "OS/ARCH, several separated by blanks")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	r.time = time.Unix(epoch, 0).UTC()
	r.version = strings.TrimPrefix(r.version, "v")
	for name := range strings.FieldsSeq(platforms) {
		system, arch, ok := strings.Cut(name, "/")
		if !ok {
			return fmt.Errorf("-platforms has %q: give OS/ARCH, for example linux/amd64", name)
		}
		r.platforms = append(r.platforms, platform{system, arch})
	}
	if !semver.MatchString(r.version) {
		return fmt.Errorf("-version is %q: give a semantic version, for example v1.2.3", r.version)
	}
	if len(r.platforms) == 0 {
		return fmt.Errorf("-platforms is empty: give for example \"linux/amd64 windows/amd64\"")
	}
	switch args[0] {
	case "archives":
		return r.archives()
	case "packages":
		for _, step := range []func() error{r.archives, r.npm, r.composer} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%q cannot be built: say archives or packages", args[0])
}

// semver is the form of a version that every package registry takes. A number has no leading zero.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?$`)

// build builds the binary of a platform and returns its path.
func (r *release) build(p platform) (string, error) {
	file := filepath.Join(r.binaries, p.os+"_"+p.arch, p.binary())
	// -buildvcs would stamp the state of the work tree, and only where there is git; the version is given instead.
	linked := fmt.Sprintf("-s -w -X main.releaseVersion=v%[1]s -X main.releaseCommit=%[2]s -X github.com/bridgecheck/bridgecheck/bridge/mcp.releaseVersion=v%[1]s",
		r.version, r.commit)
	cmd := command([]string{"GOOS=" + p.os, "GOARCH=" + p.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0"},
		"go", "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", linked, "-o", file, "./cmd/bridgecheck")
	compiled := &progress{platform: p, began: time.Now(), every: 10 * time.Second}
	cmd.Stderr = compiled
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go build for %s: %w: %s", p, err, compiled.output.String())
	}
	fmt.Printf("%s: built in %.0f s, %d packages compiled\n", p, time.Since(compiled.began).Seconds(), compiled.packages)
	return file, nil
}

// progress reads what go build -v prints, a line for each package that it compiles, and shows now and then how many there
// are: a build with an empty cache takes minutes.
type progress struct {
	platform platform
	began    time.Time
	every    time.Duration
	shown    time.Time
	packages int
	output   bytes.Buffer
}

func (p *progress) Write(text []byte) (int, error) {
	p.output.Write(text)
	p.packages += bytes.Count(text, []byte("\n"))
	if now := time.Now(); now.Sub(p.shown) >= p.every {
		p.shown = now
		fmt.Printf("%s: %d packages compiled, %.0f s\n", p.platform, p.packages, now.Sub(p.began).Seconds())
	}
	return len(text), nil
}

// completions are the files of the shells, by the names under which each shell looks for them.
var completions = map[string]string{
	"bash": "bridgecheck.bash", "zsh": "_bridgecheck", "fish": "bridgecheck.fish", "powershell": "bridgecheck.ps1",
}

// texts writes the manual pages to dir/man and the completions to dir/completions. They come from the program itself, built
// for the system that this runs on.
func (r *release) texts(dir string) error {
	program, err := r.build(platform{runtime.GOOS, runtime.GOARCH})
	if err != nil {
		return err
	}
	if program, err = filepath.Abs(program); err != nil {
		return err
	}
	epoch := fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix())
	if _, err := output([]string{epoch}, program, "man", filepath.Join(dir, "man")); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "completions"), 0o755); err != nil {
		return err
	}
	for shell, name := range completions {
		script, err := output(nil, program, "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "completions", name), []byte(script), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// output runs a command with more environment and returns what it prints.
func output(env []string, name string, args ...string) (string, error) {
	cmd := command(env, name, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err, errs.String())
	}
	return string(out), nil
}

func command(env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}
