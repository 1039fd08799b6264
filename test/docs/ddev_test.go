package docs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
	"github.com/bridgecheck/bridgecheck/internal/program"
	"github.com/bridgecheck/bridgecheck/internal/settings"
)

const addon = "../../packaging/ddev"

// strictly reads a YAML file of the add-on; an unknown key is an error.
func strictly(t *testing.T, name string, into any) {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(addon, name)))(t)
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	err := decoder.Decode(into)
	must.Assert(t, err == nil, "%s: %v", name, err)
}

// DDEV copies the files that install.yaml lists, and removes and replaces those that have its mark.
func TestTheAddonOfDDEV(t *testing.T) {
	var install struct {
		Name         string
		ProjectFiles []string `yaml:"project_files"`
		Constraint   string   `yaml:"ddev_version_constraint"`
	}
	strictly(t, "install.yaml", &install)
	must.Expect(t, install.Name == "bridgecheck" && regexp.MustCompile(`^>= v\d+\.\d+\.\d+$`).MatchString(install.Constraint),
		"the add-on is %q for DDEV %q", install.Name, install.Constraint)
	found := []string{"install.yaml"}
	for _, name := range install.ProjectFiles {
		data, err := os.ReadFile(filepath.Join(addon, name))
		if err != nil {
			t.Error(err)
			continue
		}
		found = append(found, name)
		must.Expect(t, regexp.MustCompile(`(?m)^#ddev-generated$`).Match(data),
			"%s has no line #ddev-generated: DDEV would neither replace nor remove it", name)
	}
	must.Do(t, filepath.WalkDir(addon, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(addon, path)
		must.Expect(t, err != nil || entry.IsDir() || slices.Contains(found, filepath.ToSlash(name)), "install.yaml does not list %s", name)
		return err
	}))
	data := must.Get(os.ReadFile(filepath.Join(addon, "bridgecheck/bridgecheck.yaml")))(t)
	_, err := settings.Parse("bridgecheck.yaml", data)
	must.Expect(t, err == nil, "%v", err)
}

// addonService is what the add-on uses of compose; a key that is not here is an error.
type addonService struct {
	ContainerName string `yaml:"container_name"`
	Image         string
	Command       []string
	Environment   map[string]string
	Expose        []string
	Healthcheck   struct {
		Test              []string
		Interval, Timeout string
		Retries           int
	}
	Labels        map[string]string
	Restart, User string
	Volumes       []string
}

func addonServices(t *testing.T) map[string]addonService {
	t.Helper()
	var file struct{ Services map[string]addonService }
	strictly(t, "docker-compose.bridgecheck.yaml", &file)
	return file.Services
}

func TestTheServicesOfDDEV(t *testing.T) {
	ports := map[string]string{"8025": "Mailpit", "8026": "Mailpit", "8142": "XHGui", "8143": "XHGui"} // of the project's router
	for name, s := range addonServices(t) {
		if s.ContainerName != "ddev-${DDEV_SITENAME}-"+name || s.Labels["com.ddev.site-name"] != "${DDEV_SITENAME}" || s.Labels["com.ddev.approot"] != "${DDEV_APPROOT}" || len(s.Labels) != 2 || s.Restart != "no" {
			t.Errorf("%s: DDEV does not recognize the container %q with %v, restart %q", name, s.ContainerName, s.Labels, s.Restart)
		}
		must.Expect(t, s.Image == "${BRIDGECHECK_IMAGE:-bridgecheck}", "%s: the image %q is not what docs/install.md builds", name, s.Image)
		for _, kind := range []string{"HTTP_EXPOSE", "HTTPS_EXPOSE"} {
			outside, inside, _ := strings.Cut(s.Environment[kind], ":")
			if ports[outside] != "" || !slices.Equal(s.Expose, []string{inside}) {
				t.Errorf("%s: %s is %q: it is the port of %q, or not that of the service, %v", name, kind, s.Environment[kind], ports[outside], s.Expose)
			}
			ports[outside] = name
		}
		if check := s.Healthcheck; len(check.Test) != 4 || check.Test[0] != "CMD" || check.Test[1] != "/bridgecheck" || check.Test[2] != "healthy" || !strings.Contains(check.Test[3], "127.0.0.1:"+s.Expose[0]) || check.Interval == "" || check.Timeout == "" || check.Retries == 0 {
			t.Errorf("%s: the health check is %+v", name, check)
		}
	}
	var settings []string
	for _, s := range bridge.Settings() {
		settings = append(settings, s.Env)
	}
	b := addonServices(t)["bridgecheck-bridge"]
	for variable := range b.Environment {
		if !slices.Contains(settings, variable) && !slices.Contains([]string{"VIRTUAL_HOST", "HTTP_EXPOSE", "HTTPS_EXPOSE"}, variable) {
			t.Errorf("neither the bridge nor DDEV reads %s", variable)
		}
	}
	must.Expect(t, b.Environment["BRIDGE_LISTEN"] == "0.0.0.0:"+b.Expose[0] && b.User == "${DDEV_UID}:${DDEV_GID}",
		"the bridge listens on %q, as %q", b.Environment["BRIDGE_LISTEN"], b.User)
	known := regexp.MustCompile(`^(DDEV_(SITENAME|APPROOT|HOSTNAME|UID|GID)|BRIDGECHECK_(IMAGE|DRUPAL):-.+)$`)
	data := must.Get(os.ReadFile(filepath.Join(addon, "docker-compose.bridgecheck.yaml")))(t)
	for _, m := range regexp.MustCompile(`\$\{?([^}\s]*)`).FindAllStringSubmatch(string(data), -1) {
		must.Expect(t, known.MatchString(m[1]), "DDEV has no variable %s, and there is no default", m[0])
	}
}

// TestTheCommandsOfDDEV runs what the containers run, and `ddev bridgecheck` with a stand-in for docker. A mock is in the
// place of the project's Drupal.
func TestTheCommandsOfDDEV(t *testing.T) {
	must.Need(t, !testing.Short(), "SKIPPED: -short: the commands of the DDEV add-on are not run")
	_, err := os.Stat("/bin/sh")
	must.Need(t, err == nil, "SKIPPED: the commands of the DDEV add-on are not run: %v", err)
	binary, services := program.Build(t), addonServices(t)
	r := newReader(t, "ddev", binary)
	r.write(t, "shims/docker", "#!/bin/sh\ntest \"$1 $2 $3\" = 'exec ddev-site-bridgecheck-bridge /bridgecheck' || exit 125\nshift 3\ncd work && exec '"+binary+"' \"$@\"\n")
	script := must.Get(os.ReadFile(filepath.Join(addon, "commands/host/bridgecheck")))(t)
	r.write(t, "ddev-bridgecheck", string(script))
	config := must.Get(os.ReadFile(filepath.Join(addon, "bridgecheck/bridgecheck.yaml")))(t)
	r.write(t, "work/bridgecheck.yaml", r.replaced(t, strings.NewReplacer("http://web ", "http://SITE ", "mcp_agent", "agent").Replace(string(config))))
	local := func(words []string) string {
		return strings.ReplaceAll(strings.Join(words, " "), "0.0.0.0", "127.0.0.1")
	}
	follow := func(text string) {
		t.Helper()
		if !r.follow(t, step{page: "ddev", text: text}) {
			t.FailNow()
		}
	}
	r.write(t, ".state", "DRUPAL_URL=http://"+r.site+"\nAGENT_PASSWORD=agent-pass\nDDEV_SITENAME=site\n")
	for _, name := range []string{"bridgecheck-mock", "bridgecheck-bridge"} {
		s := services[name]
		check := strings.TrimPrefix(local(s.Healthcheck.Test[1:]), "/")
		follow(check + " # exit code 1")
		follow("bridgecheck " + local(s.Command))
		follow(check)
	}
	follow("./ddev-bridgecheck --only 'list/*' # exit code 4")
	follow(`grep -q '"verdict": "pass"' work/report/report.json`)
	follow("AGENT_PASSWORD=wrong ./ddev-bridgecheck --only 'list/*' # exit code 2")
}
