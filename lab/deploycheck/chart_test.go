package deploycheck

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"oauth-server/internal/check"
	"oauth-server/internal/secret"
)

const chartDir = "deploy/helm"

// chartValues are the sets of values that the chart is rendered with.
var chartValues = map[string]string{
	"defaults": `
config: { issuer: "https://auth.example.com", trusted_proxies: [10.8.3.0/28] }
`,
	"everything on": `
image: { repository: registry.example.com/oauth, digest: "sha256:` + strings.Repeat("0a", 32) + `" }
imagePullSecrets: [{ name: registry }]
nameOverride: tokens
drainDelaySeconds: 30
shutdownTimeoutSeconds: 60
config:
  issuer: https://auth.example.com/oauth
  trusted_proxies: [10.8.3.0/28, "2001:db8::/64"]
  tracing: { endpoint: "http://collector.monitoring:4318", sample_ratio: 0.01 }
  rate_limit: { mode: enforce, max_keys: 2000000, default: { user: [{ name: per-hour, requests: 1000000, window: 1h }] } }
mongodb: { database: tokens }
signingKeys: { existingSecret: oauth-keys }
firstOperator: { enabled: true, access: read }
resources: { requests: { cpu: "1", memory: 256Mi }, limits: { memory: 1536Mi } }
extraEnv: [{ name: OAUTH_SYNC_INTERVAL, value: 2s }]
podAnnotations: { example.com/team: identity }
podLabels: { example.com/tier: edge }
priorityClassName: high
nodeSelector: { kubernetes.io/arch: arm64 }
tolerations: [{ key: dedicated, operator: Equal, value: identity, effect: NoSchedule }]
affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: a, operator: Exists }] }] } } }
autoscaling: { enabled: true }
podDisruptionBudget: { maxUnavailable: 25% }
service: { type: LoadBalancer, annotations: { example.com/internal: "true" } }
ingress: { enabled: true, annotations: { cert-manager.io/cluster-issuer: letsencrypt } }
networkPolicy:
  ingressFrom: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: ingress-nginx } } }]
  mongodbTo: [{ ipBlock: { cidr: 192.0.2.0/24 } }]
  extraEgress: [{ to: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: monitoring } } }], ports: [{ port: 4318, protocol: TCP }] }]
podMonitor: { enabled: true, labels: { release: prometheus } }
prometheusRule: { enabled: true, labels: { release: prometheus } }
`,
	"everything off": `
config: { issuer: "https://auth.example.com", trusted_proxies: none, rate_limit: null, log: null }
drainDelaySeconds: 0
podDisruptionBudget: { enabled: false }
networkPolicy: { enabled: false }
topologySpread: { zones: false, nodes: false }
`,
	"gateway": `
config:
  gateway: { upstream: "https://keycloak.keycloak.svc:8443", token_path: ["/realms/*/protocol/openid-connect/token"], public_url: "https://login.example.com/" }
  trusted_proxies: [10.8.3.0/28]
ingress: { enabled: true }
firstOperator: { enabled: true }
podMonitor: { enabled: true }
networkPolicy: { upstreamTo: [{ namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: keycloak } } }] }
`,
	"gateway in the cluster": `
config:
  gateway: { upstream: "http://hydra.hydra.svc", insecure: true, token_path: [/oauth2/token], public_url: "https://login.example.com" }
  trusted_proxies: none
networkPolicy: { upstreamPort: 4444 }
`,
	"an operator's own secret": `
config: { issuer: "https://auth.example.com", trusted_proxies: none }
firstOperator: { enabled: true, existingSecret: oauth-keys }
`,
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	withoutLog(t)
	c, err := loader.Load(filepath.Join(root, chartDir))
	check.OK(t, err)
	return c
}

// withoutLog drops what Helm logs: that rules/ is a symbolic link.
func withoutLog(t *testing.T) {
	t.Helper()
	log := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(log) })
}

// render returns what the templates give, by their names, as `helm install` renders them.
func render(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	var given map[string]any
	check.OK(t, yaml.Unmarshal([]byte(values), &given))
	release := common.ReleaseOptions{Name: "login", Namespace: "oauth", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(loadChart(t), given, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(loadChart(t), all)
}

// charted returns the objects of the chart.
func charted(t *testing.T, values string) (all objects) {
	t.Helper()
	rendered, err := render(t, values)
	check.OK(t, err)
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(name, ".yaml") {
			all = append(all, parse(t, []byte(rendered[name]))...)
		}
	}
	return all
}

// helm lint, with warnings, finds nothing but that there is no icon.
func TestChartLints(t *testing.T) {
	withoutLog(t)
	for name, values := range chartValues {
		t.Run(name, func(t *testing.T) {
			var given map[string]any
			check.OK(t, yaml.Unmarshal([]byte(values), &given))
			for _, m := range lint.RunAll(filepath.Join(root, chartDir), given, "oauth").Messages {
				if m.Severity > support.InfoSev {
					t.Error(m)
				}
			}
		})
	}
}

func TestChartMakesWhatIsSwitchedOn(t *testing.T) {
	for name, want := range map[string][]string{
		"defaults":       {"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"},
		"everything off": {"ConfigMap", "Deployment", "Service"},
		"everything on": {
			"ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Ingress", "Job", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor",
			"PrometheusRule", "PrometheusRule", "Secret", "Service",
		},
		"gateway": {
			"ConfigMap", "Deployment", "Ingress", "Job", "NetworkPolicy", "PodDisruptionBudget", "PodMonitor", "Secret", "Service",
		},
		"an operator's own secret": {"ConfigMap", "Deployment", "Job", "NetworkPolicy", "PodDisruptionBudget", "Service"},
	} {
		var got []string
		for _, o := range charted(t, chartValues[name]) {
			got = append(got, kindOf(o))
		}
		slices.Sort(got)
		check.Equal(t, name, got, want)
	}
}

// Chart.yaml states the release of Kubernetes that serves the newest kind of object.
func TestChartNeedsNoNewerKubernetesThanItStates(t *testing.T) {
	newest := 0
	for _, o := range charted(t, chartValues["everything on"]) {
		for is, kind := range kinds {
			if is.Kind == kindOf(o) {
				newest = max(newest, kind.since)
			}
		}
	}
	check.Equal(t, "kubeVersion", loadChart(t).Metadata.KubeVersion, fmt.Sprintf(">=1.%d.0-0", newest))
}

// What the server would refuse at its start is refused when the chart is rendered, where the chart can know.
func TestChartRefusesValues(t *testing.T) {
	const good = "config: { issuer: 'https://auth.example.com', trusted_proxies: none }\n"
	for values, refusal := range map[string]string{
		"{}":                        "config.issuer is required",
		"config: { gateway: null }": "config.issuer is required",
		"config: { gateway: { upstream: 'https://idp.example' } }":                                                                               "token_path is required",
		"config: { gateway: { upstream: 'https://idp.example', token_path: [/token] } }":                                                         "public_url is required",
		"config: { gateway: { upstream: 'https://idp.example', token_path: [/token], public_url: 'https://login.example' } }":                    "trusted_proxies is required",
		"config: { gateway: { upstream: 'https://idp.example/path' } }":                                                                          "upstream",
		"config: { gateway: { upstream: 'https://idp.example', token_path: [token], public_url: 'https://login.example' } }":                     "token_path",
		"config: { gateway: { upstream: 'https://idp.example', token_path: [/token], public_url: login.example }, trusted_proxies: [10.0.0.1] }": "public_url",
		"config: { issuer: 'https://auth.example.com' }":                                                                                         "config.trusted_proxies is required",
		"config: { issuer: 'https://auth.example.com', trusted_proxies: a}":                                                                      "trusted_proxies",
		"config: { listen: '0.0.0.0:80' }":                                                                                                       "listen",
		good + "replica: 3":                                                                                                                      "replica",
		good + "replicas: -1":                                                                                                                    "replicas",
		good + "resources: { limits: { memory: 1.5Gi } }":                                                                                        "memory",
		good + "resources: { limits: { memory: null } }":                                                                                         "memory",
		good + "image: { digest: abc }":                                                                                                          "digest",
		good + "firstOperator: { access: all }":                                                                                                  "access",
		good + "mongodb: { existingSecret: '' }":                                                                                                 "existingSecret",
		good + "service: { port: 0 }":                                                                                                            "port",
	} {
		if _, err := render(t, values); err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("%s: %v, want something about %s", values, err, refusal)
		}
	}
}

// The server accepts the configuration that the chart makes, whole numbers and all.
func TestChartConfigurationIsValid(t *testing.T) {
	for name, values := range chartValues {
		cfg, err := loadText(t, configuration(t, charted(t, values)))
		check.OK(t, err, name)
		check.Equal(t, "admin address", cfg.AdminListen, "0.0.0.0:9097")
	}
	cfg, err := loadText(t, configuration(t, charted(t, chartValues["everything on"])))
	check.OK(t, err)
	check.Equal(t, "keys in memory", cfg.RateLimit.MaxKeys, 2_000_000)
	check.Equal(t, "requests", cfg.RateLimit.Default.User[0].Requests, 1_000_000)
	check.Equal(t, "drain delay", cfg.DrainDelay.String(), "30s")
}

// A changed configuration replaces the pods; so does nothing else of the values.
func TestChartReplacesPodsWhenTheConfigurationChanges(t *testing.T) {
	sum := func(values string) string {
		return one[apps.Deployment](t, charted(t, values)).Spec.Template.Annotations["checksum/config"]
	}
	before := sum(chartValues["defaults"])
	check.Equal(t, "the same configuration", sum(chartValues["defaults"]+"replicas: 5\n"), before)
	if sum(chartValues["defaults"]+"drainDelaySeconds: 6\n") == before || before == "" {
		t.Error("another configuration has the same checksum")
	}
}

func TestChartScalesOrCounts(t *testing.T) {
	if n := one[apps.Deployment](t, charted(t, chartValues["everything on"])).Spec.Replicas; n != nil {
		t.Errorf("%d replicas, beside the autoscaler", *n)
	}
	all := charted(t, chartValues["everything on"])
	check.Equal(t, "scaled", one[autoscaling.HorizontalPodAutoscaler](t, all).Spec.ScaleTargetRef.Name, one[apps.Deployment](t, all).Name)
	check.Equal(t, "replicas", *one[apps.Deployment](t, charted(t, chartValues["defaults"])).Spec.Replicas, 3)
}

// The Ingress serves the issuer, whose metadata is beside its path (RFC 8414 section 3), by the port of clients.
func TestChartIngressServesTheIssuer(t *testing.T) {
	all := charted(t, chartValues["everything on"])
	rules := one[networking.Ingress](t, all).Spec.Rules
	check.Equal(t, "host", rules[0].Host, "auth.example.com")
	var paths []string
	for _, p := range rules[0].HTTP.Paths {
		paths = append(paths, p.Path)
		check.Equal(t, "backend", p.Backend.Service.Name+":"+p.Backend.Service.Port.Name, one[core.Service](t, all).Name+":http")
	}
	check.Equal(t, "paths", paths, []string{"/oauth", "/.well-known/oauth-authorization-server/oauth"})
}

// The rules of the PrometheusRules are those that are shipped for Prometheus: the chart has the same files.
func TestChartHasTheShippedRules(t *testing.T) {
	var want, got []monitoring.RuleGroup
	for _, file := range ruleFiles(t) {
		var spec monitoring.PrometheusRuleSpec
		check.OK(t, yaml.UnmarshalStrict([]byte(read(t, file)), &spec))
		want = append(want, spec.Groups...)
	}
	for _, r := range every[monitoring.PrometheusRule](charted(t, chartValues["everything on"])) {
		got = append(got, r.Spec.Groups...)
	}
	byName := func(a, b monitoring.RuleGroup) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(want, byName)
	slices.SortFunc(got, byName)
	check.Equal(t, "groups", got, want)
}

// The first operator's secret is made in the Secret, is one that `client create` takes, and reaches the Job as a file.
func TestChartMakesTheFirstOperator(t *testing.T) {
	all := charted(t, chartValues["everything on"])
	made := one[core.Secret](t, all)
	check.Equal(t, "client_id", made.StringData["client_id"], "ops")
	_, err := secret.Given(made.StringData["client_secret"])
	check.OK(t, err)
	if again := one[core.Secret](t, charted(t, chartValues["everything on"])); again.StringData["client_secret"] == made.StringData["client_secret"] {
		t.Error("the secret is the same in every cluster")
	}
	check.Equal(t, "kept", made.Annotations["helm.sh/resource-policy"], "keep")
	pod := one[batch.Job](t, all).Spec.Template.Spec
	check.Equal(t, "arguments", pod.Containers[0].Args, []string{
		"client", "create", "ops", "--admin=read", "--secret-file=" + pod.Containers[0].VolumeMounts[0].MountPath + "/client_secret",
	})
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		for _, e := range c.Env {
			if e.Value == made.StringData["client_secret"] || e.Name == "OAUTH_KEYS_SECRET" {
				t.Errorf("%s has %s", c.Name, e.Name)
			}
		}
	}
}

// README.md lists every value with what the schema says about it and what values.yaml has.
func TestChartValuesAreDocumented(t *testing.T) {
	var schema property
	check.OK(t, yaml.Unmarshal([]byte(read(t, chartDir+"/values.schema.json")), &schema))
	var table strings.Builder
	table.WriteString("| value | default | what it is |\n|---|---|---|\n")
	values := loadChart(t).Values
	for _, name := range slices.Sorted(maps.Keys(values)) {
		documentValue(t, &table, name, values[name], schema.Properties[name])
	}
	for name := range schema.Properties {
		if _, ok := values[name]; !ok && name != "global" {
			t.Errorf("values.yaml does not have %s", name)
		}
	}
	const begin, end = "<!-- values -->\n", "<!-- end of values -->\n"
	file := chartDir + "/README.md"
	before, rest, _ := strings.Cut(read(t, file), begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no place for the values", file)
	}
	want := before + begin + table.String() + end + after
	if *update {
		check.OK(t, os.WriteFile(filepath.Join(root, file), []byte(want), 0o600))
	}
	if read(t, file) != want {
		t.Errorf("the table of %s is not up to date: go -C lab test ./deploycheck -run Documented -update", file)
	}
}

// property is a part of the schema.
type property struct {
	Description string
	Properties  map[string]property
}

// UnmarshalJSON reads a schema; false, which admits nothing, is an empty one.
func (p *property) UnmarshalJSON(text []byte) error {
	type plain property
	if string(text) == "false" {
		return nil
	}
	return json.Unmarshal(text, (*plain)(p))
}

// documentValue writes the lines of a value and of those in it.
func documentValue(t *testing.T, table *strings.Builder, path string, value any, is property) {
	t.Helper()
	inner, ok := value.(map[string]any)
	if !ok || len(is.Properties) == 0 {
		if is.Description == "" {
			t.Errorf("the schema does not describe %s", path)
		}
		text, err := yaml.Marshal(value)
		check.OK(t, err)
		fmt.Fprintf(table, "| `%s` | %s | %s |\n", path, shown(strings.TrimSpace(string(text))), is.Description)
		return
	}
	if is.Description != "" {
		fmt.Fprintf(table, "| `%s` | | %s |\n", path, is.Description)
	}
	for name := range is.Properties {
		if _, ok := inner[name]; !ok && path != "config" {
			t.Errorf("values.yaml does not have %s.%s", path, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		if p, ok := is.Properties[name]; ok || path != "config" { // the rest of config is the server's
			documentValue(t, table, path+"."+name, inner[name], p)
		}
	}
}

// shown returns a default as the table shows it.
func shown(text string) string {
	switch {
	case text == `""` || text == "{}" || text == "[]":
		return ""
	case strings.Contains(text, "\n"), strings.Contains(text, ": "):
		return "`{ " + strings.ReplaceAll(text, "\n", ", ") + " }`"
	}
	return "`" + text + "`"
}
