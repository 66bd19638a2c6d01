package deploycheck

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
)

// manifest reads one manifest strictly: an unknown field is an error, as it is for
// `kubectl apply`.
func manifest[T any](t *testing.T, name string) *T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "deploy/kubernetes", name))
	check.OK(t, err)
	into := new(T)
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return into
}

func TestKubernetesManifestsAreStrictlyValid(t *testing.T) {
	manifest[core.Namespace](t, "namespace.yaml")
	manifest[core.ConfigMap](t, "configmap.yaml")
	manifest[apps.Deployment](t, "deployment.yaml")
	manifest[core.Service](t, "service.yaml")
	manifest[policy.PodDisruptionBudget](t, "poddisruptionbudget.yaml")
	manifest[networking.NetworkPolicy](t, "networkpolicy.yaml")
	manifest[monitoring.PodMonitor](t, "podmonitor.yaml")
}

type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace"`
	Resources  []string `json:"resources"`
	Images     []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
}

func TestKustomizationNamesEveryManifest(t *testing.T) {
	named := manifest[kustomization](t, "kustomization.yaml").Resources
	files, err := filepath.Glob(filepath.Join(root, "deploy/kubernetes/*.yaml"))
	check.OK(t, err)
	if len(named) != len(files)-1 {
		t.Errorf("kustomization.yaml names %d manifests of %d", len(named), len(files)-1)
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
			t.Errorf("%s has a writable root or may escalate its privileges", c.Name)
		}
		if s != nil && (s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL")) {
			t.Errorf("%s has capabilities", c.Name)
		}
		checkMemory(t, &c)
	}
	if s := pod.SecurityContext; s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
		s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
		t.Error("the pod has all system calls, or may run as root")
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

// checkMemory checks that garbage is collected before the kernel kills the process: GOMEMLIMIT is
// from 80 to 90 % of the limit.
func checkMemory(t *testing.T, c *core.Container) {
	t.Helper()
	limit := c.Resources.Limits.Memory().Value()
	if c.Resources.Requests.Cpu().IsZero() || limit == 0 {
		t.Errorf("%s has no resource requests or limits", c.Name)
	}
	i := slices.IndexFunc(c.Env, func(e core.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
	if i < 0 {
		t.Errorf("%s has no GOMEMLIMIT", c.Name)
		return
	}
	goLimit, err := resource.ParseQuantity(strings.TrimSuffix(c.Env[i].Value, "B")) // Go's MiB is Mi here
	if err != nil {
		t.Fatal(err)
	}
	if share := 100 * goLimit.Value() / limit; share < 80 || share >= 90 {
		t.Errorf("%s: GOMEMLIMIT is %d %% of the memory limit", c.Name, share)
	}
}

// The image of the deployment is the one whose version kustomization.yaml sets.
func TestDeploymentRunsAFullVersion(t *testing.T) {
	images := manifest[kustomization](t, "kustomization.yaml").Images
	if len(images) != 1 || !fullVersion.MatchString(images[0].NewName+":"+images[0].NewTag) {
		t.Fatalf("the images are %+v", images)
	}
	pod := manifest[apps.Deployment](t, "deployment.yaml").Spec.Template.Spec
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if c.Image != images[0].Name {
			t.Errorf("%s runs %s, whose version is not set", c.Name, c.Image)
		}
	}
}

// A pod sends to DNS, MongoDB and, if it is configured, the collector of traces.
func TestEgressIsToWhatIsConfigured(t *testing.T) {
	spec := manifest[networking.NetworkPolicy](t, "networkpolicy.yaml").Spec
	if !slices.Contains(spec.PolicyTypes, networking.PolicyTypeEgress) {
		t.Fatal("a pod may send anywhere")
	}
	want := []string{"27017/TCP", "53/TCP", "53/UDP"}
	if endpoint := kubernetesConfig(t).Tracing.Endpoint; endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, u.Port()+"/TCP")
	}
	var got []string
	for _, rule := range spec.Egress {
		if len(rule.Ports) == 0 {
			t.Error("a rule allows every port")
		}
		for _, p := range rule.Ports {
			got = append(got, p.Port.String()+"/"+string(*p.Protocol))
			if p.Port.IntValue() == 53 && len(rule.To) == 0 {
				t.Error("DNS goes anywhere, so anything can be carried out in it")
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("pods may send to %q, want %q", got, want)
	}
}

func TestAdminPortIsForTheScraperOnly(t *testing.T) {
	for _, port := range manifest[core.Service](t, "service.yaml").Spec.Ports {
		if port.TargetPort.StrVal != "http" {
			t.Errorf("the service forwards to %s", port.TargetPort.String())
		}
	}
	for _, rule := range manifest[networking.NetworkPolicy](t, "networkpolicy.yaml").Spec.Ingress {
		for _, port := range rule.Ports {
			if port.Port.StrVal == "admin" && len(rule.From) == 0 {
				t.Error("the admin port is open to all")
			}
		}
	}
	scraped := manifest[monitoring.PodMonitor](t, "podmonitor.yaml").Spec.PodMetricsEndpoints
	if len(scraped) != 1 || scraped[0].Port == nil || *scraped[0].Port != "admin" {
		t.Errorf("the admin port is not what is scraped: %+v", scraped)
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

// TestKubernetesConfigurationIsValid: all but the addresses of the ingress, which only the operator
// knows. No default stands in for them, since every pod in a range too wide could pretend to be any
// client.
func TestKubernetesConfigurationIsValid(t *testing.T) {
	check.Equal(t, "trusted ranges", len(kubernetesConfig(t).TrustedProxies.Ranges()), 1)
}

// kubernetesConfig returns the configuration with the operator's addresses filled in.
func kubernetesConfig(t *testing.T) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "oauth-server.yaml")
	text, ok := manifest[core.ConfigMap](t, "configmap.yaml").Data["oauth-server.yaml"]
	if !ok {
		t.Fatal("configmap.yaml holds no oauth-server.yaml")
	}
	check.OK(t, os.WriteFile(file, []byte(text), 0o600))
	_, err := config.Load(config.Sources{File: file})
	check.ErrorSays(t, err, "trusted_proxies: is required")
	if problems := strings.Count(err.Error(), "\n") + 1; problems != 1 {
		t.Errorf("%d problems: %v", problems, err)
	}
	edited := strings.Replace(text, "# trusted_proxies:", "trusted_proxies:", 1)
	check.OK(t, os.WriteFile(file, []byte(edited), 0o600))
	return load(t, file)
}
