package deploycheck

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
	"oauth-server/lab/traffic"
)

// project is what `docker compose config` prints, with all profiles.
func project(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")}, cli.WithProfiles([]string{"*"}))
	check.OK(t, err)
	p, err := options.LoadProject(t.Context())
	check.OK(t, err)
	return p
}

func TestComposeFileLoads(t *testing.T) {
	p := project(t)
	for _, name := range []string{"mongo", "migrate", "prepare", "oauth-1", "oauth-2", "oauth-3", "lb", "traffic", "gateway", "prometheus", "grafana"} {
		if _, ok := p.Services[name]; !ok {
			t.Errorf("no service %s", name)
		}
	}
	for _, name := range []string{"traffic", "gateway"} {
		check.Equal(t, "profiles of "+name, p.Services[name].Profiles, []string{name})
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

// fullVersion is a tag such as v3.5.0 or 1.28.3-alpine, which is never moved to another release.
var fullVersion = regexp.MustCompile(`:v?\d+\.\d+\.\d+(-[a-z0-9.]+)?$`)

func TestComposeImagesHaveFullVersions(t *testing.T) {
	for name, s := range project(t).Services {
		if s.Build == nil && !fullVersion.MatchString(s.Image) {
			t.Errorf("%s runs %s", name, s.Image)
		}
	}
}

// The database is reached by those who use it, and not by what faces the outside.
//
// Attack (deployment): Reaching the database from outside. It has an internal network. Ports are
// published on loopback, the admin port not at all. Also
// deploycheck.TestComposePublishesOnLoopbackAndNoAdminPort.
func TestComposeDatabaseHasItsOwnNetwork(t *testing.T) {
	p := project(t)
	for name, n := range p.Networks {
		if want := name == "database" || name == "metrics"; n.Internal != want {
			t.Errorf("network %s: internal is %v", name, n.Internal)
		}
	}
	users := []string{"mongo", "migrate", "prepare", "oauth-1", "oauth-2", "oauth-3"}
	for name, s := range p.Services {
		if _, in := s.Networks["database"]; in != slices.Contains(users, name) {
			t.Errorf("%s is on the network of the database: %v", name, in)
		}
		if len(s.Networks) == 0 && s.NetworkMode != "none" {
			t.Errorf("%s has no network of its own, so it is on the default one", name)
		}
	}
	if mongo := p.Services["mongo"]; len(mongo.Networks) != 1 || len(mongo.Ports) > 0 {
		t.Errorf("mongo is on %v and publishes %v", mongo.Networks, mongo.Ports)
	}
}

// TestComposeGatewayIsValid: the gateway of the profile starts, and is known to Prometheus by its name.
func TestComposeGatewayIsValid(t *testing.T) {
	s := project(t).Services["gateway"]
	check.Equal(t, "command", s.Command[0], "gateway")
	var flags []config.FlagValue
	for _, arg := range s.Command[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if value == "" {
			value = "true"
		}
		flags = append(flags, config.FlagValue{Name: name, Value: value})
	}
	cfg, err := config.Load(config.Sources{Flags: flags, Environ: []string{"OAUTH_LISTEN=0.0.0.0:9096"}})
	check.OK(t, err)
	check.Equal(t, "public URL", cfg.Gateway.PublicURL, "http://localhost:"+s.Ports[0].Published)
	_, port, err := net.SplitHostPort(cfg.AdminListen)
	check.OK(t, err)
	scraped := read(t, "deploy/prometheus/prometheus.yml")
	if !strings.Contains(scraped, "names: ["+s.Name+"], type: A, port: "+port) {
		t.Errorf("Prometheus does not look for %s:%s", s.Name, port)
	}
	if !strings.Contains(scraped, "source_labels: [__meta_dns_name], target_label: namespace") {
		t.Error("alerts compare the gateway with the servers, although it has a store of its own")
	}
}

func TestDemoConfigurationIsValidAndNamesDemoClients(t *testing.T) {
	cfg := load(t, filepath.Join(root, "deploy/demo/oauth-server.yaml"),
		config.FlagValue{Name: "listen", Value: "0.0.0.0:9096"},
		config.FlagValue{Name: "issuer", Value: "http://localhost:9096"})
	var known []string
	for _, c := range traffic.DemoClients() {
		known = append(known, c.ID)
	}
	for id := range cfg.RateLimit.Clients {
		if !slices.Contains(known, id) {
			t.Errorf("%s has a policy and is not one of the demo clients %q", id, known)
		}
	}
}
