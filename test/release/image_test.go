package release

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// images are the stages of the Dockerfile that are used as images: the last one is that of a build without --target.
var images = []struct {
	stage      string
	base       *regexp.Regexp
	entrypoint string
	check      []string // the health check, without CMD
}{
	{"tester", regexp.MustCompile(`^debian:[a-z]+-slim$`), "bridgecheck", nil},
	{"runtime", regexp.MustCompile(`^scratch$`), "/bridgecheck", []string{"/bridgecheck", "healthy", "127.0.0.1:8080", "http://127.0.0.1:8081/healthz"}},
}

func TestDockerfile(t *testing.T) {
	parsed, err := parser.Parse(bytes.NewReader(read(t, "packaging/Dockerfile")))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range parsed.Warnings {
		t.Errorf("Dockerfile: %s", w.Short)
	}
	stages, _, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{Warn: func(rule, _, _, text string, at []parser.Range) {
		t.Errorf("Dockerfile: %s: %s %v", rule, text, at)
	}}))
	if err != nil {
		t.Fatal(err)
	}
	if len(stages) != len(images)+1 || stages[0].Name != "build" {
		t.Fatalf("%d stages, expected build and those of images", len(stages))
	}
	if !slices.ContainsFunc(stages[0].Commands, func(command instructions.Command) bool {
		run, ok := command.(*instructions.RunCommand)
		return ok && strings.Contains(strings.Join(run.CmdLine, " "), "CGO_ENABLED=0 go build")
	}) {
		t.Error("the binary is not built statically, and scratch has no C library")
	}
	for i, want := range images {
		t.Run(want.stage, func(t *testing.T) {
			stage := stages[i+1]
			if stage.Name != want.stage || !want.base.MatchString(stage.BaseName) {
				t.Fatalf("stage %q from %s, expected %q from %v", stage.Name, stage.BaseName, want.stage, want.base)
			}
			testImage(t, stage.Commands, want.entrypoint, want.check)
		})
	}
}

// testImage expects of an image that it runs the binary, without root, and holds its licences.
func testImage(t *testing.T, commands []instructions.Command, entrypoint string, check []string) {
	user, starts, healthChecks, copied := "", []string(nil), 0, []string(nil)
	for _, command := range commands {
		switch c := command.(type) {
		case *instructions.UserCommand:
			user = c.User
		case *instructions.EntrypointCommand:
			starts = c.CmdLine
			if c.PrependShell {
				t.Error("the entrypoint needs a shell, which then gets the signals")
			}
		case *instructions.HealthCheckCommand:
			healthChecks++
			expected := append([]string{"CMD"}, check...)
			if check == nil {
				expected = []string{"NONE"}
			}
			if !slices.Equal(c.Health.Test, expected) {
				t.Errorf("the health check is %q, expected %q", c.Health.Test, expected)
			}
			if check != nil && (c.Health.Interval == 0 || c.Health.Timeout == 0) {
				t.Error("the health check has no interval or no time-out, so that an image is healthy after 30 s at the earliest")
			}
		case *instructions.CopyCommand:
			if c.From != "build" {
				t.Errorf("COPY from %q, expected from build", c.From)
			}
			copied = append(copied, c.SourcePaths...)
		case *instructions.AddCommand:
			t.Errorf("%s fetches or unpacks: COPY does not", c.Name())
		}
	}
	if uid, _, _ := strings.Cut(user, ":"); uid == "" || uid == "0" || uid == "root" {
		t.Errorf("the image runs as %q: it should run without root, by number, for scratch has no names", user)
	}
	if !slices.Equal(starts, []string{entrypoint}) {
		t.Errorf("the entrypoint is %q, expected %q", starts, entrypoint)
	}
	if healthChecks != 1 {
		t.Errorf("%d health checks, expected one, or NONE", healthChecks)
	}
	for _, file := range []string{"/bridgecheck", "/src/LICENSE", "/src/THIRD_PARTY_NOTICES"} {
		if !slices.Contains(copied, file) {
			t.Errorf("the image does not hold %s", file)
		}
	}
}
