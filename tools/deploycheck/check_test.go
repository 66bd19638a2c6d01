package deploycheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// project is what `docker compose config` prints, with all profiles.
func project(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")}, cli.WithProfiles([]string{"*"}))
	if err != nil {
		t.Fatal(err)
	}
	p, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComposeFileLoads(t *testing.T) {
	p := project(t)
	for _, name := range []string{"mongo", "migrate", "prepare", "oauth-1", "oauth-2", "oauth-3", "lb", "traffic", "prometheus", "grafana"} {
		if _, ok := p.Services[name]; !ok {
			t.Errorf("no service %s", name)
		}
	}
	if profiles := p.Services["traffic"].Profiles; len(profiles) != 1 || profiles[0] != "traffic" {
		t.Errorf("traffic runs without being asked for: profiles %v", profiles)
	}
}

func TestComposeMountsWhatIsThere(t *testing.T) {
	for name, s := range project(t).Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestComposePublishesOnLoopbackAndNoAdminPort(t *testing.T) {
	for name, s := range project(t).Services {
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s is published on %q", name, port.HostIP)
			}
			if port.Target == 9097 {
				t.Errorf("%s publishes its admin port", name)
			}
		}
	}
}

func TestComposeImagesHaveVersions(t *testing.T) {
	for name, s := range project(t).Services {
		if s.Build != nil {
			continue
		}
		if _, tag, ok := strings.Cut(s.Image, ":"); !ok || tag == "latest" {
			t.Errorf("%s runs %s", name, s.Image)
		}
	}
}

// manifest reads one manifest strictly: a field that Kubernetes does not know
// is an error, as `kubectl apply` says it is.
func manifest[T any](t *testing.T, name string) *T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "deploy/kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	into := new(T)
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return into
}

func TestKubernetesManifestsHoldWhatKubernetesKnows(t *testing.T) {
	manifest[core.Namespace](t, "namespace.yaml")
	manifest[core.ConfigMap](t, "configmap.yaml")
	manifest[apps.Deployment](t, "deployment.yaml")
	manifest[core.Service](t, "service.yaml")
	manifest[policy.PodDisruptionBudget](t, "poddisruptionbudget.yaml")
	manifest[networking.NetworkPolicy](t, "networkpolicy.yaml")
	manifest[monitoring.PodMonitor](t, "podmonitor.yaml")
}

func TestKustomizationNamesEveryManifest(t *testing.T) {
	named := manifest[struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Namespace  string   `json:"namespace"`
		Resources  []string `json:"resources"`
	}](t, "kustomization.yaml").Resources
	files, err := filepath.Glob(filepath.Join(root, "deploy/kubernetes/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(named) != len(files)-1 {
		t.Errorf("%d are named, %d are there", len(named), len(files)-1)
	}
	for _, name := range named {
		if _, err := os.Stat(filepath.Join(root, "deploy/kubernetes", name)); err != nil {
			t.Error(err)
		}
	}
}

func TestDeploymentIsFitForProduction(t *testing.T) {
	d := manifest[apps.Deployment](t, "deployment.yaml")
	pod := d.Spec.Template.Spec
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		s := c.SecurityContext
		if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
			s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
			t.Errorf("%s may do more than it needs", c.Name)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s says nothing of its resources", c.Name)
		}
	}
	c := pod.Containers[0]
	if c.LivenessProbe == nil || c.ReadinessProbe == nil || c.StartupProbe == nil {
		t.Error("a probe is missing")
	}
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Error("a failing database would restart every pod, or requests would go to one that is down")
	}
	if *d.Spec.Replicas < 2 {
		t.Error("one pod cannot be replaced without a gap")
	}
}

func TestAdminPortIsForTheScraperOnly(t *testing.T) {
	for _, port := range manifest[core.Service](t, "service.yaml").Spec.Ports {
		if port.TargetPort.StrVal != "http" {
			t.Errorf("the service leads to %s", port.TargetPort.String())
		}
	}
	for _, rule := range manifest[networking.NetworkPolicy](t, "networkpolicy.yaml").Spec.Ingress {
		for _, port := range rule.Ports {
			if port.Port.StrVal == "admin" && len(rule.From) == 0 {
				t.Error("everybody may reach the admin port")
			}
		}
	}
	scraped := manifest[monitoring.PodMonitor](t, "podmonitor.yaml").Spec.PodMetricsEndpoints
	if len(scraped) != 1 || scraped[0].Port == nil || *scraped[0].Port != "admin" {
		t.Errorf("what is scraped is not the admin port: %+v", scraped)
	}
}

func TestSelectorsMeetThePods(t *testing.T) {
	labels := manifest[apps.Deployment](t, "deployment.yaml").Spec.Template.Labels
	for name, selector := range map[string]map[string]string{
		"service":    manifest[core.Service](t, "service.yaml").Spec.Selector,
		"budget":     manifest[policy.PodDisruptionBudget](t, "poddisruptionbudget.yaml").Spec.Selector.MatchLabels,
		"policy":     manifest[networking.NetworkPolicy](t, "networkpolicy.yaml").Spec.PodSelector.MatchLabels,
		"podmonitor": manifest[monitoring.PodMonitor](t, "podmonitor.yaml").Spec.Selector.MatchLabels,
	} {
		if len(selector) == 0 {
			t.Errorf("%s selects everything", name)
		}
		for k, v := range selector {
			if labels[k] != v {
				t.Errorf("%s: pods have %s=%q, not %q", name, k, labels[k], v)
			}
		}
	}
}
