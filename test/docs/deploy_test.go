package docs

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/internal/must"
)

const replicas = "../../examples/replicas"

// object is what the manifest uses of Kubernetes; a key that is not here, or stands at another place, is an error.
type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   metadata
	Spec       struct {
		Replicas int
		Selector yaml.Node
		Strategy struct {
			Type          string
			RollingUpdate struct {
				MaxUnavailable int `yaml:"maxUnavailable"`
				MaxSurge       int `yaml:"maxSurge"`
			} `yaml:"rollingUpdate"`
		}
		Template struct {
			Metadata metadata
			Spec     pod
		}
		Ports []struct {
			Name       string
			Port       int
			TargetPort string `yaml:"targetPort"`
		}
		MinAvailable int `yaml:"minAvailable"`
	}
}

type metadata struct {
	Name   string
	Labels map[string]string
}

type matchLabels struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type pod struct {
	AutomountServiceAccountToken bool `yaml:"automountServiceAccountToken"`
	SecurityContext              struct {
		RunAsNonRoot   bool                  `yaml:"runAsNonRoot"`
		RunAsUser      int                   `yaml:"runAsUser"`
		SeccompProfile struct{ Type string } `yaml:"seccompProfile"`
	} `yaml:"securityContext"`
	TerminationGracePeriodSeconds int `yaml:"terminationGracePeriodSeconds"`
	TopologySpreadConstraints     []struct {
		MaxSkew           int         `yaml:"maxSkew"`
		TopologyKey       string      `yaml:"topologyKey"`
		WhenUnsatisfiable string      `yaml:"whenUnsatisfiable"`
		LabelSelector     matchLabels `yaml:"labelSelector"`
	} `yaml:"topologySpreadConstraints"`
	Containers []container
}

type container struct {
	Name, Image string
	Args        []string
	Env         []struct {
		Name, Value string
		ValueFrom   struct {
			SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	Readiness *probe `yaml:"readinessProbe"`
	Liveness  *probe `yaml:"livenessProbe"`
	Lifecycle struct {
		PreStop struct{ Sleep struct{ Seconds int } } `yaml:"preStop"`
	}
	Resources struct {
		Requests, Limits struct{ CPU, Memory string }
	}
	SecurityContext struct {
		AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
}

type probe struct {
	HTTPGet          struct{ Path, Port string } `yaml:"httpGet"`
	TCPSocket        struct{ Port string }       `yaml:"tcpSocket"`
	PeriodSeconds    int                         `yaml:"periodSeconds"`
	FailureThreshold int                         `yaml:"failureThreshold"`
}

// TestTheManifestOfKubernetes reads the manifest strictly: what it refers to is there, and the bridge takes its settings.
func TestTheManifestOfKubernetes(t *testing.T) {
	deployments, services := map[string]object{}, map[string]object{}
	decoder := yaml.NewDecoder(bytes.NewReader(file(t, "kubernetes.yaml")))
	decoder.KnownFields(true)
	for {
		var o object
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		switch o.APIVersion + " " + o.Kind {
		case "apps/v1 Deployment":
			deployments[o.Metadata.Name] = o
		case "v1 Service":
			services[o.Metadata.Name] = o
		case "policy/v1 PodDisruptionBudget":
			var s matchLabels
			if err := o.Spec.Selector.Decode(&s); err != nil || o.Spec.MinAvailable >= deployments[s.MatchLabels["app"]].Spec.Replicas {
				t.Errorf("the budget %s: %v, %+v", o.Metadata.Name, err, s)
			}
		default:
			t.Errorf("%s of %s is unknown", o.Kind, o.APIVersion)
		}
	}
	for name, d := range deployments {
		var s matchLabels
		if err := d.Spec.Selector.Decode(&s); err != nil || len(s.MatchLabels) == 0 || !maps.Equal(s.MatchLabels, d.Spec.Template.Metadata.Labels) {
			t.Errorf("%s: the selector %v is not the labels %v (%v)", name, s.MatchLabels, d.Spec.Template.Metadata.Labels, err)
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			ports := portsOf(c)
			for _, p := range []*probe{c.Readiness, c.Liveness} {
				if p != nil && ports[p.HTTPGet.Port+p.TCPSocket.Port] == 0 {
					t.Errorf("%s: a probe of the port %q, which is none of %v", name, p.HTTPGet.Port+p.TCPSocket.Port, ports)
				}
			}
			if c.Readiness == nil || c.Image == "" || c.Resources.Limits.Memory == "" || !c.SecurityContext.ReadOnlyRootFilesystem || c.SecurityContext.AllowPrivilegeEscalation || !d.Spec.Template.Spec.SecurityContext.RunAsNonRoot {
				t.Errorf("%s: the container %s has no probe, image or limit of memory, or may do more than it needs", name, c.Name)
			}
		}
	}
	for name, s := range services {
		var selector map[string]string
		d, found := object{}, false
		if err := s.Spec.Selector.Decode(&selector); err == nil {
			d, found = deployments[selector["app"]]
		}
		must.Assert(t, found, "the service %s selects no deployment: %v", name, selector)
		for _, p := range s.Spec.Ports {
			must.Expect(t, portsOf(d.Spec.Template.Spec.Containers[0])[p.TargetPort] != 0,
				"the service %s sends to the port %q, which the deployment does not have", name, p.TargetPort)
		}
	}
	b := deployments["bridge"]
	must.Assert(t, b.Spec.Replicas >= 2, "%d replicas of the bridge", b.Spec.Replicas)
	c := b.Spec.Template.Spec.Containers[0]
	env := map[string]string{}
	for _, e := range c.Env {
		env[e.Name] = e.Value
		if e.ValueFrom.SecretKeyRef.Key != "" {
			env[e.Name] = strings.Repeat("secret ", 6)
		}
	}
	takes(t, env, c.Args)
	if store, err := url.Parse(env["BRIDGE_SHARED"]); err != nil || services[store.Hostname()].Spec.Ports == nil {
		t.Errorf("BRIDGE_SHARED is %q, which is no service", env["BRIDGE_SHARED"])
	}
	external(t, "kubeconform", "-strict", filepath.Join(replicas, "kubernetes.yaml"))
}

func portsOf(c container) map[string]int {
	ports := map[string]int{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort
	}
	return ports
}

// TestTheComposeFile reads the compose file strictly, and the configuration of its balancer for what replicas need.
func TestTheComposeFile(t *testing.T) {
	var f struct {
		Services map[string]struct {
			Image, Restart string
			Command        []string
			Environment    map[string]string
			Deploy         struct {
				Replicas  int
				Resources struct{ Limits struct{ Memory string } }
			}
			ReadOnly  bool     `yaml:"read_only"`
			DependsOn []string `yaml:"depends_on"`
			Ports     []string
			Volumes   []string
			Networks  []string
		}
		Networks map[string]struct {
			IPAM struct{ Config []struct{ Subnet string } }
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(file(t, "compose.yaml")))
	decoder.KnownFields(true)
	must.Do(t, decoder.Decode(&f))
	for name, s := range f.Services {
		for _, n := range s.Networks {
			_, known := f.Networks[n]
			must.Expect(t, known, "%s: the network %s is not there", name, n)
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			file(t, from)
		}
	}
	b := f.Services["bridge"]
	must.Expect(t, b.Deploy.Replicas >= 2, "%d replicas of the bridge", b.Deploy.Replicas)
	env := maps.Clone(b.Environment)
	env["DRUPAL_URL"], env["BRIDGE_SESSION_KEYS"] = "https://drupal.example.org", strings.Repeat("secret ", 6)
	takes(t, env, b.Command)
	store, err := url.Parse(env["BRIDGE_SHARED"])
	must.Expect(t, err == nil && f.Services[store.Hostname()].Image != "", "BRIDGE_SHARED is %q, which is no service", env["BRIDGE_SHARED"])
	must.Expect(t, env["BRIDGE_TRUSTED_PROXIES"] == f.Networks["inside"].IPAM.Config[0].Subnet,
		"the balancer is not trusted: %q", env["BRIDGE_TRUSTED_PROXIES"])
	_, port, _ := strings.Cut(env["BRIDGE_LISTEN"], ":")
	for _, line := range []string{"server bridge:" + port + ";", "proxy_next_upstream off;", "X-Forwarded-For $remote_addr;", "proxy_buffering off;"} {
		must.Expect(t, strings.Contains(string(file(t, "nginx.conf")), line), "nginx.conf has no %q", line)
	}
	if exec.Command("docker", "compose", "version").Run() != nil {
		t.Log("NOT TESTED: docker compose is not installed: it did not read the file")
		return
	}
	t.Setenv("DRUPAL_URL", env["DRUPAL_URL"])
	t.Setenv("BRIDGE_SESSION_KEYS", env["BRIDGE_SESSION_KEYS"])
	external(t, "docker", "compose", "-f", filepath.Join(replicas, "compose.yaml"), "config", "--quiet")
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join(replicas, name)))(t)
}

// takes expects that the bridge takes environment and arguments as they are.
func takes(t *testing.T, env map[string]string, args []string) {
	t.Helper()
	variables, flags := []string{}, []string{}
	for _, s := range bridge.Settings() {
		variables, flags = append(variables, s.Env), append(flags, "--"+strings.ReplaceAll(s.Name, "_", "-"))
	}
	for name := range env {
		must.Expect(t, slices.Contains(variables, name), "the bridge does not read %s", name)
	}
	for _, a := range args[1:] {
		must.Expect(t, !strings.HasPrefix(a, "-") || slices.Contains(flags, a), "the bridge has no flag %s", a)
	}
	var o bridge.Options
	err := cmp.Or(o.FromEnv(func(name string) string { return env[name] }), o.Check())
	must.Expect(t, err == nil && len(o.SessionKeys) > 0 && o.Shared != "" && len(o.TrustedProxies) > 0,
		"the bridge does not take %v: %v", env, err)
}

// external runs a linter of others where it is installed.
func external(t *testing.T, command string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath(command); err != nil {
		t.Logf("NOT TESTED: %s is not installed: it did not read the file", command)
		return
	}
	out, err := exec.Command(command, args...).CombinedOutput()
	must.Expect(t, err == nil, "%s: %v\n%s", command, err, out)
}
