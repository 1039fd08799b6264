package settings_test

import (
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/settings"
)

var update = flag.Bool("update", false, "write docs/settings.md and the generated parts of action.yml")

// keysOf lists the keys of a configuration that hold a value.
func keysOf(t reflect.Type, at string) []string {
	if t == reflect.TypeFor[yaml.Node]() || t == reflect.TypeFor[settings.Duration]() {
		return []string{at}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return keysOf(t.Elem(), at)
	case reflect.Map:
		return keysOf(t.Elem(), at+".NAME")
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return keysOf(t.Elem(), at+"[]")
		}
	case reflect.Struct:
		var all []string
		for _, field := range reflect.VisibleFields(t) {
			if name := field.Tag.Get("yaml"); name != "" && !field.Anonymous {
				all = append(all, keysOf(field.Type, strings.TrimPrefix(at+"."+name, "."))...)
			}
		}
		return all
	}
	return []string{at}
}

// The table has every key of the file and no other, and each flag once.
func TestTheTableHasEveryKey(t *testing.T) {
	rows := map[string]int{}
	for _, s := range settings.Table() {
		for _, name := range []string{s.Key, "--" + s.Flag} {
			rows[name]++
		}
		must.Expect(t, s.Help != "", "%s%s has no help", s.Key, s.Flag)
	}
	keys := keysOf(reflect.TypeFor[settings.File](), "")
	for _, key := range keys {
		must.Expect(t, rows[key] == 1,
			"the table has %d rows for the key %s of the file: add one to internal/settings/table.go", rows[key], key)
		delete(rows, key)
	}
	delete(rows, "")
	delete(rows, "--")
	for name, n := range rows {
		must.Expect(t, strings.HasPrefix(name, "--") && n == 1,
			"the table has %d rows for %s: one for each flag, and none for a key that the file does not have", n, name)
	}
}

// Each option of the table is a field of what the library takes.
func TestOptionsAreFields(t *testing.T) {
	for _, s := range settings.Table() {
		if s.Option == "" {
			continue
		}
		at := map[string]reflect.Type{"Options": reflect.TypeFor[engine.Options](), "Target": reflect.TypeFor[engine.Target]()}[strings.Split(s.Option, ".")[0]]
		for _, name := range strings.Split(s.Option, ".")[1:] {
			field, ok := at.FieldByName(name)
			if !ok {
				t.Errorf("%s%s: there is no field %s", s.Key, s.Flag, s.Option)
				break
			}
			at = field.Type
		}
	}
}

func TestAsOptions(t *testing.T) {
	for in, want := range map[string]string{
		"unknown: give --discovery-ttl":        "unknown: give Options.Bridge.DiscoveryTTL",
		"give --upstream-timeout 2s":           "give Options.Bridge.UpstreamTimeout 2s",
		"give --url for each, and --shard I/N": "give Target.URL for each, and bridgecheck run --shard I/N",
		"try `bridgecheck run --only 'x'`":     "try `bridgecheck run --only 'x'`",
		"no flag, but -- and --nosuch":         "no flag, but -- and --nosuch",
	} {
		must.Equal(t, settings.AsOptions(in), want, "what becomes of %q", in)
	}
}

func TestFlagsOfAGoSuite(t *testing.T) {
	file := t.TempDir() + "/b.yaml"
	must.Do(t, os.WriteFile(file, []byte("only: [list]\nskip: [load]\nsettings: {page_size: 9, upstream_timeout: 4s}\n"), 0o644))
	t.Setenv("BRIDGE_URL", "http://127.0.0.1:8081")
	t.Setenv("BRIDGE_DISCOVERY_TTL", "3")
	t.Setenv("BRIDGE_PAGE_SIZE", "7")
	t.Setenv("BRIDGE_ONLY", "describe,mapping/*")
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	given := settings.Flags(fs)
	must.Do(t, fs.Parse([]string{"-page-size", "8", "-strict", "-config", file, "-mock-listen", "127.0.0.1:0", "-capabilities", "-naming-id,mcp"}))
	g := must.Get(given(t.Context()))(t)
	o := g.Options
	if g.Target.URL != "http://127.0.0.1:8081" || g.MockListen != "127.0.0.1:0" || o.Bridge.PageSize != 8 || o.Bridge.DiscoveryTTL != 3*time.Second ||
		o.Bridge.UpstreamTimeout != 4*time.Second || strings.Join(o.Only, " ") != "describe mapping/*" || strings.Join(o.Skip, " ") != "load" || !o.Strict ||
		o.Connection.Timeout != 10*time.Second || strings.Contains(strings.Join(o.Capabilities, " "), "naming-id") {
		t.Errorf("the suite is given %+v", g)
	}
	t.Setenv("BRIDGE_SEED", "many")
	must.Refuse(given(t.Context()))(t, "BRIDGE_SEED", "a seed that is no number")
}

// The run waits longer than the bridge may; two values that contradict each other are an error with both.
func TestTimeoutsFollowFromEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		flags []string
		want  time.Duration // 0: an error
	}{
		"defaults":                   {"", nil, 10 * time.Second},
		"upstream alone":             {"", []string{"--upstream-timeout=30s"}, 35 * time.Second},
		"upstream of the file alone": {"settings: {upstream_timeout: 30s}", nil, 35 * time.Second},
		"both fit":                   {"", []string{"--upstream-timeout=30s", "--timeout=31s"}, 31 * time.Second},
		"both contradict":            {"", []string{"--upstream-timeout=30s", "--timeout=20s"}, 0},
		"a flag contradicts a file":  {"settings: {upstream_timeout: 30s}", []string{"--timeout=20s"}, 0},
	} {
		file, err := &settings.File{}, error(nil)
		if c.file != "" {
			file = must.Get(settings.Parse("b.yaml", []byte(c.file)))(t)
		}
		flags, fs := &settings.Values{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		settings.AddFlags(fs, flags)
		must.Do(t, fs.Parse(c.flags))
		v, err := settings.Resolve(file, flags, fs.Changed)
		switch {
		case c.want == 0 && (err == nil || !strings.Contains(err.Error(), "20s") || !strings.Contains(err.Error(), "30s")):
			t.Errorf("%s: expected an error with both values, got %v", name, err)
		case c.want != 0 && (err != nil || time.Duration(v.Timeout) != c.want):
			t.Errorf("%s: expected %s, got %v, %v", name, c.want, v, err)
		}
	}
}

// Every secret of the table may come from a file.
func TestSecretsComeFromFiles(t *testing.T) {
	path := t.TempDir() + "/secret"
	must.Do(t, os.WriteFile(path, []byte("hunter2\n"), 0o600))
	for _, s := range settings.Table() {
		if s.Env == "" {
			continue
		}
		t.Setenv(s.Env+"_FILE", path)
		got, err := settings.SecretFromEnv(s.Env)
		must.Expect(t, got == "hunter2" && err == nil, "%s_FILE gives %q, %v", s.Env, got, err)
		t.Setenv(s.Env, "other")
		must.Refuse(settings.SecretFromEnv(s.Env))(t, "", s.Env)
		t.Setenv(s.Env, "")
		t.Setenv(s.Env+"_FILE", path+"-nosuch")
		must.Refuse(settings.SecretFromEnv(s.Env))(t, "", s.Env)
	}
}

// docs/settings.md and action.yml have what the table has: `go test ./internal/settings -update` writes them.
func TestPageAndActionAreGenerated(t *testing.T) {
	action := must.Get(os.ReadFile("../../action.yml"))(t)
	written := must.Get(settings.Action(string(action)))(t)
	for path, want := range map[string]string{"../../docs/settings.md": settings.Page(), "../../action.yml": written} {
		if *update {
			must.Do(t, os.WriteFile(path, []byte(want), 0o644))
		}
		got, err := os.ReadFile(path)
		must.Expect(t, err == nil && string(got) == want, "%s is not what the table of settings says: go test ./internal/settings -update (%v)", path, err)
	}
	inputs := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+):$`).FindAllStringSubmatch(written, -1) {
		inputs[m[1]] = true
	}
	for _, s := range settings.Table() {
		must.Expect(t, s.Flag == "" || inputs[s.Flag] != s.Local,
			"the Action has the input %s: %t, and it is local: %t", s.Flag, inputs[s.Flag], s.Local)
	}
}
