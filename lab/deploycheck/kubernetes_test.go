package deploycheck

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
)

// everyWay returns what a cluster is given: by kustomize, and by the chart with each set of values.
func everyWay(t *testing.T) map[string]objects {
	t.Helper()
	if ways == nil {
		ways = map[string]objects{"kustomize": kustomized(t, manifests), "kustomize, gateway": kustomized(t, gatewayManifests)}
		for name, values := range chartValues {
			ways["chart, "+name] = charted(t, values)
		}
	}
	return ways
}

// ways is what everyWay has rendered, which takes a second. No test changes it.
var ways map[string]objects

func TestObjectsHaveDistinctNames(t *testing.T) {
	for way, all := range everyWay(t) {
		t.Run(way, func(t *testing.T) {
			seen := map[string]bool{}
			for _, o := range all {
				if name := strings.TrimPrefix(kindOf(o), "*") + " " + o.GetName(); seen[name] || o.GetName() == "" {
					t.Errorf("%q is there twice, or has no name", name)
				} else {
					seen[name] = true
				}
			}
		})
	}
}

// Attack (deployment): Escaping from a pod. Pods run without root and cluster token. Egress is
// limited to configured ports. Also deploycheck.TestEgressIsToWhatIsConfigured.
func TestPodsAreFitForProduction(t *testing.T) {
	for way, all := range everyWay(t) {
		t.Run(way, func(t *testing.T) {
			for name, template := range templates(all) {
				pod := template.Spec
				for _, c := range append(pod.InitContainers, pod.Containers...) {
					checkContainer(t, name, &c)
				}
				if s := pod.SecurityContext; s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
					s.RunAsNonRoot == nil || !*s.RunAsNonRoot {
					t.Errorf("%s has all system calls, or may run as root", name)
				}
				if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
					t.Errorf("%s has a token of the cluster's API", name)
				}
				if pod.EnableServiceLinks == nil || *pod.EnableServiceLinks {
					t.Errorf("%s has variables of services, whose names look like options", name)
				}
			}
		})
	}
}

func checkContainer(t *testing.T, pod string, c *core.Container) {
	t.Helper()
	s := c.SecurityContext
	if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
		s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		t.Errorf("%s: %s has a writable root or may escalate its privileges", pod, c.Name)
	}
	if s != nil && (s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL")) {
		t.Errorf("%s: %s has capabilities", pod, c.Name)
	}
	checkMemory(t, c)
	checkOptions(t, c)
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
	check.OK(t, err)
	if share := 100 * goLimit.Value() / limit; share < 80 || share >= 90 {
		t.Errorf("%s: GOMEMLIMIT is %d %% of the memory limit", c.Name, share)
	}
}

// checkOptions checks that the server has the flags and variables that a container gives it.
func checkOptions(t *testing.T, c *core.Container) {
	t.Helper()
	flags, variables := []string{"config", "admin", "secret-file"}, []string{"GOMEMLIMIT"}
	for _, o := range config.Options() {
		flags, variables = append(flags, o.Name), append(variables, o.Env())
	}
	for _, arg := range c.Args {
		if name, is := strings.CutPrefix(arg, "--"); is {
			if name, _, _ = strings.Cut(name, "="); !slices.Contains(flags, name) {
				t.Errorf("%s uses --%s, which the server does not have", c.Name, name)
			}
		}
	}
	for _, e := range c.Env {
		if !slices.Contains(variables, e.Name) {
			t.Errorf("%s sets %s, which the server does not read", c.Name, e.Name)
		}
	}
}

func TestServersAreProbedAndSpread(t *testing.T) {
	for way, all := range everyWay(t) {
		t.Run(way, func(t *testing.T) {
			d := one[apps.Deployment](t, all)
			c := d.Spec.Template.Spec.Containers[0]
			if c.LivenessProbe == nil || c.ReadinessProbe == nil || c.StartupProbe == nil {
				t.Fatal("a probe is missing")
			}
			cfg, err := loadText(t, withProxies(configuration(t, all)))
			check.OK(t, err)
			command, port := "serve", "http"
			if cfg.Gateway.Enabled() {
				command, port = "gateway", "admin" // on the other one, /healthz is the upstream's
			}
			check.Equal(t, "command", c.Args[0], command)
			for _, p := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				check.Equal(t, "probed port", p.HTTPGet.Port.StrVal, port)
			}
			if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
				t.Error("a failing database would restart every pod, or requests would go to one that is down")
			}
			if d.Spec.Replicas != nil && *d.Spec.Replicas < 2 {
				t.Error("one pod cannot be replaced without a gap")
			}
			if u := d.Spec.Strategy.RollingUpdate.MaxUnavailable; u.IntValue() != 0 {
				t.Errorf("%s pods are missing during a roll-out", u)
			}
			for _, spread := range d.Spec.Template.Spec.TopologySpreadConstraints {
				checkSelector(t, spread.TopologyKey, spread.LabelSelector.MatchLabels, d.Spec.Template.Labels, true)
			}
		})
	}
}

// A pod is given the time to drain and to stop, and does not wait before that.
func TestGracePeriodIsLongEnough(t *testing.T) {
	for way, all := range everyWay(t) {
		t.Run(way, func(t *testing.T) {
			cfg, err := loadText(t, withProxies(configuration(t, all)))
			check.OK(t, err)
			pod := one[apps.Deployment](t, all).Spec.Template.Spec
			needed := cfg.DrainDelay.Std() + cfg.ShutdownTimeout.Std()
			if given := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; given < needed+5*time.Second {
				t.Errorf("the grace period is %s, and drain_delay and shutdown_timeout are %s", given, needed)
			}
			if pod.Containers[0].Lifecycle != nil {
				t.Error("there is a preStop hook, which only adds to the drain delay")
			}
		})
	}
}

// upstreamPorts are the ports that the upstreams of the tested gateways listen on.
var upstreamPorts = map[string]string{
	"https://keycloak.keycloak.svc:8443": "8443",
	"http://hydra.hydra.svc":             "4444",
	"https://idp.example.com":            "443",
}

// A pod sends to DNS, MongoDB and, if they are configured, the upstream and the collector of traces.
func TestEgressIsToWhatIsConfigured(t *testing.T) {
	for way, all := range everyWay(t) {
		t.Run(way, func(t *testing.T) {
			cfg, err := loadText(t, withProxies(configuration(t, all)))
			check.OK(t, err)
			want := []string{"27017/TCP", "53/TCP", "53/UDP"}
			if endpoint := cfg.Tracing.Endpoint; endpoint != "" {
				u, err := url.Parse(endpoint)
				check.OK(t, err)
				want = append(want, u.Port()+"/TCP")
			}
			if upstream := cfg.Gateway.Upstream; upstream != "" {
				want = append(want, upstreamPorts[upstream]+"/TCP")
			}
			for _, p := range every[networking.NetworkPolicy](all) {
				checkEgress(t, &p.Spec, want)
			}
		})
	}
}

func checkEgress(t *testing.T, spec *networking.NetworkPolicySpec, want []string) {
	t.Helper()
	if !slices.Contains(spec.PolicyTypes, networking.PolicyTypeEgress) {
		t.Fatal("a pod may send anywhere")
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
	check.Equal(t, "what pods may send to", got, want)
}

func TestAdminPortIsForTheScraperOnly(t *testing.T) {
	for way, all := range everyWay(t) {
		t.Run(way, func(t *testing.T) {
			for _, port := range one[core.Service](t, all).Spec.Ports {
				check.Equal(t, "port of the service", port.TargetPort.StrVal, "http")
			}
			for _, p := range every[networking.NetworkPolicy](all) {
				for _, rule := range p.Spec.Ingress {
					for _, port := range rule.Ports {
						if port.Port.StrVal == "admin" && len(rule.From) == 0 {
							t.Error("the admin port is open to all")
						}
					}
				}
			}
			for _, m := range every[monitoring.PodMonitor](all) {
				scraped := m.Spec.PodMetricsEndpoints
				if len(scraped) != 1 || scraped[0].Port == nil || *scraped[0].Port != "admin" {
					t.Errorf("the admin port is not what is scraped: %+v", scraped)
				}
			}
		})
	}
}

// The network policy holds for every pod, all else is about servers only: a Service that selected the
// pod of a Job would send requests to it.
func TestSelectorsMeetThePods(t *testing.T) {
	for way, all := range everyWay(t) {
		t.Run(way, func(t *testing.T) {
			selectors := map[string]map[string]string{
				"deployment": one[apps.Deployment](t, all).Spec.Selector.MatchLabels,
				"service":    one[core.Service](t, all).Spec.Selector,
			}
			for _, b := range every[policy.PodDisruptionBudget](all) {
				selectors["budget"] = b.Spec.Selector.MatchLabels
			}
			for _, m := range every[monitoring.PodMonitor](all) {
				selectors["podmonitor"] = m.Spec.Selector.MatchLabels
			}
			for pod, template := range templates(all) {
				for name, selector := range selectors {
					checkSelector(t, name+" and "+pod, selector, template.Labels, strings.HasPrefix(pod, "Deployment"))
				}
				for _, p := range every[networking.NetworkPolicy](all) {
					checkSelector(t, "policy and "+pod, p.Spec.PodSelector.MatchLabels, template.Labels, true)
				}
			}
		})
	}
}

func checkSelector(t *testing.T, what string, selector, pod map[string]string, want bool) {
	t.Helper()
	if got := labels.SelectorFromSet(selector).Matches(labels.Set(pod)); got != want || len(selector) == 0 {
		t.Errorf("%s: %v selects %v: %v, want %v", what, selector, pod, got, want)
	}
}

// What is used of Secrets and ConfigMaps of its own is there.
func TestReferencesAreMet(t *testing.T) {
	for way, all := range everyWay(t) {
		t.Run(way, func(t *testing.T) {
			made := map[string]bool{"oauth-mongodb": true, "oauth-keys": true} // made beforehand
			for _, s := range every[core.Secret](all) {
				made[s.Name] = true
			}
			for _, m := range every[core.ConfigMap](all) {
				made[m.Name] = true
			}
			var used []string
			for _, pod := range templates(all) {
				for _, v := range pod.Spec.Volumes {
					if v.ConfigMap != nil {
						used = append(used, v.ConfigMap.Name)
					}
					if v.Secret != nil {
						used = append(used, v.Secret.SecretName)
					}
				}
				for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
					for _, e := range c.Env {
						if e.ValueFrom != nil {
							used = append(used, e.ValueFrom.SecretKeyRef.Name)
						}
					}
				}
			}
			for _, name := range used {
				if !made[name] {
					t.Errorf("%s is used, and not in %q", name, slices.Sorted(maps.Keys(made)))
				}
			}
		})
	}
}

// kindOf returns the kind of an object.
func kindOf(o meta.Object) string {
	for is, kind := range kinds {
		if typeName(kind.new()) == typeName(o) {
			return is.Kind
		}
	}
	return "?"
}
