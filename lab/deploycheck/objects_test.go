package deploycheck

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
)

// kinds are the objects that the manifests and the chart may have, and the minor release of
// Kubernetes 1 that serves each first; 0 if an operator has to be installed for it.
var kinds = map[meta.TypeMeta]struct {
	new   func() meta.Object
	since int
}{
	{APIVersion: "v1", Kind: "Namespace"}:                            {func() meta.Object { return new(core.Namespace) }, 1},
	{APIVersion: "v1", Kind: "ConfigMap"}:                            {func() meta.Object { return new(core.ConfigMap) }, 2},
	{APIVersion: "v1", Kind: "Secret"}:                               {func() meta.Object { return new(core.Secret) }, 1},
	{APIVersion: "v1", Kind: "Service"}:                              {func() meta.Object { return new(core.Service) }, 1},
	{APIVersion: "apps/v1", Kind: "Deployment"}:                      {func() meta.Object { return new(apps.Deployment) }, 9},
	{APIVersion: "batch/v1", Kind: "Job"}:                            {func() meta.Object { return new(batch.Job) }, 2},
	{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}:      {func() meta.Object { return new(networking.NetworkPolicy) }, 7},
	{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"}:            {func() meta.Object { return new(networking.Ingress) }, 19},
	{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}:           {func() meta.Object { return new(policy.PodDisruptionBudget) }, 21},
	{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"}:  {func() meta.Object { return new(autoscaling.HorizontalPodAutoscaler) }, 23},
	{APIVersion: "monitoring.coreos.com/v1", Kind: "PodMonitor"}:     {func() meta.Object { return new(monitoring.PodMonitor) }, 0},
	{APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule"}: {func() meta.Object { return new(monitoring.PrometheusRule) }, 0},
}

// objects are what a cluster is given.
type objects []meta.Object

// parse reads manifests strictly: an unknown field is an error, as it is for `kubectl apply`.
func parse(t *testing.T, text []byte) (all objects) {
	t.Helper()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		raw, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		check.OK(t, err)
		var is meta.TypeMeta
		check.OK(t, strict.Unmarshal(raw, &is), string(raw))
		if is == (meta.TypeMeta{}) {
			continue // comments only
		}
		kind, known := kinds[is]
		if !known {
			t.Fatalf("%s %s is no kind that is checked", is.APIVersion, is.Kind)
		}
		o := kind.new()
		if err := strict.UnmarshalStrict(raw, o); err != nil {
			t.Fatalf("%s: %v\n%s", is.Kind, err, raw)
		}
		all = append(all, o)
	}
}

// every returns the objects of a kind.
func every[T any](all objects) (found []*T) {
	for _, o := range all {
		if is, ok := o.(any).(*T); ok {
			found = append(found, is)
		}
	}
	return found
}

// one returns the only object of a kind.
func one[T any](t *testing.T, all objects) *T {
	t.Helper()
	found := every[T](all)
	if len(found) != 1 {
		t.Fatalf("%d objects of %T", len(found), *new(T))
	}
	return found[0]
}

// templates returns the pods that a deployment or job of the objects makes, by its name.
func templates(all objects) map[string]core.PodTemplateSpec {
	pods := map[string]core.PodTemplateSpec{}
	for _, d := range every[apps.Deployment](all) {
		pods["Deployment "+d.Name] = d.Spec.Template
	}
	for _, j := range every[batch.Job](all) {
		pods["Job "+j.Name] = j.Spec.Template
	}
	return pods
}

// configuration returns the file in the ConfigMap.
func configuration(t *testing.T, all objects) string {
	t.Helper()
	text, ok := one[core.ConfigMap](t, all).Data["oauth-server.yaml"]
	if !ok {
		t.Fatal("the ConfigMap holds no oauth-server.yaml")
	}
	return text
}

// loadText returns the configuration that the server reads from that text.
func loadText(t *testing.T, text string) (*config.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "oauth-server.yaml")
	check.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return config.Load(config.Sources{File: file})
}

// typeName returns the Go type of an object.
func typeName(o meta.Object) string { return fmt.Sprintf("%T", o) }
