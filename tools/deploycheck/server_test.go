package deploycheck

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"oauth-server/internal/config"
	"oauth-server/tools/traffic"
)

func read(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	return string(raw)
}

func TestOptionsInUseExist(t *testing.T) {
	flags, variables := []string{"config"}, []string{}
	for _, o := range config.Options() {
		flags, variables = append(flags, o.Name), append(variables, o.Env())
	}
	for _, file := range []string{"Dockerfile", "docker-compose.yml", "deploy/kubernetes/deployment.yaml"} {
		text := read(t, file)
		for _, m := range regexp.MustCompile(`\s--([a-z][a-z-]+)=`).FindAllStringSubmatch(text, -1) {
			if file != "Dockerfile" { // there it is Docker that reads them
				require.Contains(t, flags, m[1], file)
			}
		}
		for _, name := range regexp.MustCompile(`\bOAUTH_[A-Z_]+\b`).FindAllString(text, -1) {
			require.Contains(t, variables, name, file)
		}
	}
}

func load(t *testing.T, file string, flags ...config.FlagValue) *config.Config {
	t.Helper()
	c, err := config.Load(config.Sources{File: file, Flags: flags})
	require.NoError(t, err)
	return c
}

func TestDemoConfigurationIsGoodAndNamesTheCast(t *testing.T) {
	c := load(t, root+"/deploy/demo/oauth-server.yaml",
		config.FlagValue{Name: "listen", Value: "0.0.0.0:9096"},
		config.FlagValue{Name: "issuer", Value: "http://localhost:9096"})
	var cast []string
	for _, m := range traffic.Cast() {
		cast = append(cast, m.ID)
	}
	for id := range c.RateLimit.Clients {
		require.True(t, slices.Contains(cast, id), "%s is not in the cast", id)
	}
}

func TestKubernetesConfigurationIsGood(t *testing.T) {
	var manifest struct{ Data map[string]string }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "deploy/kubernetes/configmap.yaml")), &manifest))
	file := filepath.Join(t.TempDir(), "oauth-server.yaml")
	require.NoError(t, os.WriteFile(file, []byte(manifest.Data["oauth-server.yaml"]), 0o600))
	load(t, file)
}

// The image holds one binary and no user, shell or library. Where no image can
// be built, an empty root directory comes close: the binary, built as the
// Dockerfile builds it, starts there as nobody, says that it is well and stops.
func TestBinaryRunsInAnEmptyRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the root directory")
	}
	root := t.TempDir()
	build(t, filepath.Join(root, "oauth-server"))
	require.NoError(t, os.Mkdir(filepath.Join(root, "data"), 0o700))
	require.NoError(t, os.Chown(filepath.Join(root, "data"), 65532, 65532))
	for dir := root; dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
		if filepath.Dir(dir) == os.TempDir() {
			break
		}
	}
	listen := freeAddress(t)
	server := inRoot(t, root, "/oauth-server", "serve", "--listen="+listen)
	var log bytes.Buffer
	server.Stderr = &log
	require.NoError(t, server.Start())
	defer func() { _ = server.Process.Kill() }()

	var out []byte
	for range 100 {
		var err error
		if out, err = inRoot(t, root, "/oauth-server", "health", "--url=http://"+listen+"/healthz").CombinedOutput(); err == nil {
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	require.JSONEq(t, `{"status":"ok"}`, string(out))
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, server.Wait(), log.String())
}

// build runs the go build of the Dockerfile, for the server only.
func build(t *testing.T, binary string) {
	t.Helper()
	dockerfile := read(t, "Dockerfile")
	require.Contains(t, dockerfile, "ENV CGO_ENABLED=0\n")
	line := regexp.MustCompile(`go build (.*) -o /out/ \./cmd/oauth-server`).FindStringSubmatch(dockerfile)
	require.NotNil(t, line, "the Dockerfile builds the server in another way")
	args := append(strings.Fields("build "+strings.ReplaceAll(line[1], `"`, "")), "-o", binary, "./cmd/oauth-server")
	if i := slices.Index(args, "-ldflags=-s"); i >= 0 { // what the quotes held together
		args[i] += " " + args[i+1]
		args = slices.Delete(args, i+1, i+2)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v: %s", args, out)
}

// inRoot is a command of nobody in a root directory of its own.
func inRoot(t *testing.T, root string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...)
	cmd.Err = nil // it is looked up in the new root, not here
	cmd.Path, cmd.Dir, cmd.Env = args[0], "/data", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	return cmd
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return fmt.Sprint(l.Addr())
}
