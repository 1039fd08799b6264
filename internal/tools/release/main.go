// Command release builds what people install, from the source to `dist/`: `make dist`, `make npm` and `make composer` call it
// in the root of the repository.
//
//	release archives  an archive for each platform, its SBOM, and checksums.txt
//	release npm       an npm package for each platform and the one that people install, from the binaries of the archives
//	release composer  the Composer package, with the archives in it
//	release texts     the manual pages and shell completions alone, in the directory -out
//	release sbom      the SBOM of the binary that is the argument, in the file -out
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
		return fmt.Errorf("say what to build: archives, npm, composer, texts or sbom")
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
	for _, name := range strings.Fields(platforms) {
		system, arch, ok := strings.Cut(name, "/")
		if !ok {
			return fmt.Errorf("-platforms has %q: give OS/ARCH, for example linux/amd64", name)
		}
		r.platforms = append(r.platforms, platform{system, arch})
	}
	switch args[0] {
	case "texts":
		return r.texts(r.out)
	case "sbom":
		if flags.NArg() != 1 {
			return fmt.Errorf("sbom takes one binary, got %d arguments", flags.NArg())
		}
		return r.writeSBOM(flags.Arg(0), r.out)
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
	case "npm":
		return r.npm()
	case "composer":
		return r.composer()
	}
	return fmt.Errorf("%q is nothing to build: say archives, npm, composer, texts or sbom", args[0])
}

// semver is the form of a version that every package registry takes. A number has no leading zero.
var semver = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?$`)

// build builds the binary of a platform and returns its path.
func (r *release) build(p platform) (string, error) {
	file := filepath.Join(r.binaries, p.os+"_"+p.arch, p.binary())
	// -buildvcs would stamp the state of the work tree, and only where there is git; the version is given instead.
	_, err := output([]string{"GOOS=" + p.os, "GOARCH=" + p.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0"},
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", fmt.Sprintf("-s -w -X main.releaseVersion=v%s -X main.releaseCommit=%s", r.version, r.commit),
		"-o", file, "./cmd/bridgecheck")
	return file, err
}

// completions are the files of the shells, by the names under which each shell looks for them.
var completions = map[string]string{
	"bash": "bridgecheck.bash", "zsh": "_bridgecheck", "fish": "bridgecheck.fish", "powershell": "bridgecheck.ps1",
}

// texts writes the manual pages to dir/man and the completions to dir/completions. They come from the program itself.
func (r *release) texts(dir string) error {
	temp, err := os.MkdirTemp("", "bridgecheck-texts")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	program := filepath.Join(temp, "bridgecheck.exe") // a name that every system runs
	if _, err := output([]string{"CGO_ENABLED=0", "GOFLAGS="}, "go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./cmd/bridgecheck"); err != nil {
		return err
	}
	for _, part := range []string{"man", "completions"} {
		if err := os.RemoveAll(filepath.Join(dir, part)); err != nil {
			return err
		}
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
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(name), args[0], err, errs.String())
	}
	return string(out), nil
}
