package deploycheck

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"oauth-server/internal/check"
)

const (
	manifests        = "deploy/kubernetes"
	gatewayManifests = "deploy/kubernetes-gateway"
)

// kustomized returns what `kubectl apply -k` of a directory applies.
func kustomized(t *testing.T, dir string) objects {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, dir))
	check.OK(t, err)
	text, err := built.AsYaml()
	check.OK(t, err)
	return parse(t, text)
}

type kustomization struct {
	Resources []string `json:"resources"`
	Images    []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
}

func readKustomization(t *testing.T) (k kustomization) {
	t.Helper()
	check.OK(t, yaml.Unmarshal([]byte(read(t, manifests+"/kustomization.yaml")), &k))
	return k
}

func TestKustomizationNamesEveryManifest(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, manifests, "*.yaml"))
	check.OK(t, err)
	// All but itself and the configuration of the server.
	if named := readKustomization(t).Resources; len(named) != len(files)-2 {
		t.Errorf("kustomization.yaml names %d manifests of %d", len(named), len(files)-2)
	}
}

// The image of the deployment is the one whose version kustomization.yaml sets.
func TestKustomizationSetsAFullVersion(t *testing.T) {
	images := readKustomization(t).Images
	if len(images) != 1 || !fullVersion.MatchString(images[0].NewName+":"+images[0].NewTag) {
		t.Fatalf("the images are %+v", images)
	}
	for name, pod := range templates(kustomized(t, manifests)) {
		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			check.Equal(t, "image of "+name, c.Image, images[0].NewName+":"+images[0].NewTag)
		}
	}
}

// A changed configuration has another name, and so replaces the pods.
func TestKustomizationNamesTheConfigurationByItsContent(t *testing.T) {
	if name := one[core.ConfigMap](t, kustomized(t, manifests)).Name; !strings.HasPrefix(name, "oauth-server-") {
		t.Errorf("the ConfigMap is %s, without a hash", name)
	}
}

// TestKustomizedConfigurationIsValid: all but the addresses of the ingress, which only the operator
// knows. No default stands in for them, since every pod in a range too wide could pretend to be any
// client.
func TestKustomizedConfigurationIsValid(t *testing.T) {
	for _, dir := range []string{manifests, gatewayManifests} {
		text := configuration(t, kustomized(t, dir))
		if dir == manifests { // a gateway starts without, and counts by the address of the ingress
			_, err := loadText(t, text)
			check.ErrorSays(t, err, "trusted_proxies: is required")
			if problems := strings.Count(err.Error(), "\n") + 1; problems != 1 {
				t.Errorf("%d problems: %v", problems, err)
			}
		}
		edited, err := loadText(t, withProxies(text))
		check.OK(t, err)
		check.Equal(t, "trusted ranges", len(edited.TrustedProxies.Ranges()), 1)
		check.Equal(t, "a gateway", edited.Gateway.Enabled(), dir == gatewayManifests)
	}
}

// withProxies returns the configuration as an operator has edited it.
func withProxies(text string) string {
	return strings.Replace(text, "# trusted_proxies:", "trusted_proxies:", 1)
}

var update = flag.Bool("update", false, "write deploy/kubernetes/prometheusrule.yaml and the table of deploy/helm/README.md")

// TestPrometheusRule compares the PrometheusRule with the rules that are shipped for Prometheus:
// kustomize cannot make it from files of another folder.
func TestPrometheusRule(t *testing.T) {
	var want strings.Builder
	want.WriteString(`# Made from deploy/prometheus/rules by make dashboards.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: oauth-server
  labels: { app.kubernetes.io/name: oauth-server }
spec:
  groups:
`)
	for _, file := range ruleFiles(t) {
		_, groups, ok := strings.Cut(read(t, file), "\ngroups:\n")
		if !ok {
			t.Fatalf("%s has no groups", file)
		}
		for line := range strings.Lines(groups) {
			if strings.TrimSpace(line) != "" {
				line = "  " + line
			}
			want.WriteString(line)
		}
	}
	file := manifests + "/prometheusrule.yaml"
	if *update {
		check.OK(t, os.WriteFile(filepath.Join(root, file), []byte(want.String()), 0o600))
	}
	if read(t, file) != want.String() {
		t.Errorf("%s is not what deploy/prometheus/rules say: run make dashboards", file)
	}
}

func ruleFiles(t *testing.T) (files []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "deploy/prometheus/rules/*.yml"))
	check.OK(t, err)
	for _, f := range found {
		relative, err := filepath.Rel(root, f)
		check.OK(t, err)
		files = append(files, relative)
	}
	return files
}
