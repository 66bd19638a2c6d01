package deploycheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	"k8s.io/apimachinery/pkg/api/resource"

	"oauth-server/internal/check"
	"oauth-server/internal/config"
)

const systemdUnit = "deploy/systemd/oauth-server.service"

// service returns the section Service of the unit: every value of each option.
func service(t *testing.T) map[string][]string {
	t.Helper()
	options, err := unit.DeserializeOptions(strings.NewReader(read(t, systemdUnit)))
	check.OK(t, err)
	values := map[string][]string{}
	for _, o := range options {
		if o.Section == "Service" {
			values[o.Name] = append(values[o.Name], o.Value)
		}
	}
	return values
}

// environmentFiles are the examples, by the command that the unit runs with them.
var environmentFiles = map[string]string{
	"serve":   "deploy/systemd/oauth-server.env",
	"gateway": "deploy/systemd/oauth-gateway.env",
}

// environment returns what an example of an environment file sets, and what it shows as a comment.
func environment(t *testing.T, file string) (set, shown []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^(#?)([A-Z_]+=.*)$`).FindAllStringSubmatch(read(t, file), -1) {
		if m[1] == "" {
			set = append(set, m[2])
		} else {
			shown = append(shown, m[2])
		}
	}
	return set, shown
}

func TestServiceIsHardened(t *testing.T) {
	values := service(t)
	for name, want := range map[string]string{
		"NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "AmbientCapabilities": "", "ProtectSystem": "strict", "ProtectHome": "yes",
		"PrivateTmp": "yes", "PrivateDevices": "yes", "PrivateUsers": "yes", "ProtectProc": "invisible", "ProtectKernelTunables": "yes",
		"ProtectKernelModules": "yes", "ProtectKernelLogs": "yes", "ProtectControlGroups": "yes", "ProtectClock": "yes", "ProtectHostname": "yes",
		"RestrictNamespaces": "yes", "RestrictSUIDSGID": "yes", "LockPersonality": "yes", "MemoryDenyWriteExecute": "yes",
		"SystemCallArchitectures": "native", "RestrictAddressFamilies": "AF_INET AF_INET6", "UMask": "0077", "StateDirectoryMode": "0700",
	} {
		check.Equal(t, name, values[name], []string{want})
	}
	check.Equal(t, "system calls", values["SystemCallFilter"], []string{"@system-service", "~@privileged @resources", "setpriority"})
	if user := values["User"]; len(user) != 1 || !strings.Contains(read(t, "deploy/systemd/oauth-server.sysusers"), "\nu "+user[0]+" ") {
		t.Errorf("it runs as %q, whom sysusers does not make", user)
	}
}

// The command accepts its example, keeps its data where it may write, and has the time to stop.
func TestServiceEnvironmentIsValid(t *testing.T) {
	known := map[string]bool{"OAUTH_CONFIG": true}
	for _, o := range config.Options() {
		known[o.Env()] = true
	}
	for command, file := range environmentFiles {
		set, shown := environment(t, file)
		cfg, err := config.Load(config.Sources{Environ: set})
		check.OK(t, err, file)
		values := service(t)
		check.Equal(t, "directory of the store", filepath.Dir(cfg.Store.Embedded.Path), "/var/lib/"+values["StateDirectory"][0])
		check.Equal(t, "a gateway", cfg.Gateway.Enabled(), command == "gateway")
		runs := command
		if i := slices.IndexFunc(set, func(s string) bool { return strings.HasPrefix(s, "COMMAND=") }); i >= 0 {
			check.Equal(t, "command", set[i], "COMMAND="+command)
		} else {
			runs = strings.TrimPrefix(values["Environment"][0], "COMMAND=")
		}
		check.Equal(t, "command of "+file, runs, command)

		cfg, err = config.Load(config.Sources{Environ: append(set, "OAUTH_DRAIN_DELAY=5s")})
		check.OK(t, err)
		given, err := time.ParseDuration(values["TimeoutStopSec"][0] + "s")
		check.OK(t, err)
		if needed := cfg.DrainDelay.Std() + cfg.ShutdownTimeout.Std(); given < needed+5*time.Second {
			t.Errorf("TimeoutStopSec is %s, and drain_delay and shutdown_timeout are %s", given, needed)
		}
		for _, s := range shown {
			if name, _, _ := strings.Cut(s, "="); !known[name] {
				t.Errorf("the server does not read %s", name)
			}
		}
		checkGoLimit(t, file, set)
	}
}

// checkGoLimit checks that garbage is collected before the kernel kills the process.
func checkGoLimit(t *testing.T, file string, set []string) {
	t.Helper()
	for _, s := range set {
		value, is := strings.CutPrefix(s, "GOMEMLIMIT=")
		if !is {
			continue
		}
		goLimit, err := resource.ParseQuantity(strings.TrimSuffix(value, "B"))
		check.OK(t, err)
		most, err := resource.ParseQuantity(service(t)["MemoryMax"][0] + "i")
		check.OK(t, err)
		if share := 100 * goLimit.Value() / most.Value(); share < 80 || share >= 90 {
			t.Errorf("%s: GOMEMLIMIT is %d %% of MemoryMax", file, share)
		}
		return
	}
	t.Errorf("%s has no GOMEMLIMIT", file)
}

// systemd reads the unit without a warning, which it gives for an option that it does not have.
func TestServiceIsVerified(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("it needs systemd: %v", err)
	}
	self, err := os.Executable()
	check.OK(t, err)
	file := filepath.Join(t.TempDir(), "oauth-server.service")
	text := strings.ReplaceAll(read(t, systemdUnit), "/usr/local/bin/oauth-server", self) // which has to exist
	check.OK(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v:\n%s", err, out)
	}
}
