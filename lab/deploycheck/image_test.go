package deploycheck

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
)

// nobody is the ID of the image's user and group.
const nobody = 65532

// TestImage builds what `docker build .` is sent, as the Dockerfile builds it: a clone, less what .dockerignore excludes. The
// version is the tag; a build that lacked a tracked file would take the tree for changed. The image holds one binary and no
// user, shell or library. An empty root directory stands in for it, so that no Docker is needed: the binary starts there as the
// user nobody, reports its health and stops.
func TestImage(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "src")
	inGit(t, root, "clone", "-q", "--no-hardlinks", ".", clone)
	inGit(t, clone, "tag", "v1.2.3")
	removeIgnored(t, clone)
	empty := t.TempDir()
	build(t, clone, filepath.Join(empty, "oauth-server"))
	info, err := buildinfo.ReadFile(filepath.Join(empty, "oauth-server"))
	check.OK(t, err)
	check.Equal(t, "version", info.Main.Version, "v1.2.3")
	for _, s := range info.Settings {
		if s.Key == "vcs.modified" {
			check.Equal(t, s.Key, s.Value, "false")
		}
	}
	check.Equal(t, "changed files", inGit(t, clone, "status", "--porcelain"), "")
	if os.Geteuid() != 0 {
		t.Skip("only root can change the root directory")
	}
	addData(t, empty)
	for name, args := range map[string][]string{
		"server":  {"serve"},
		"gateway": {"gateway", "--upstream=http://127.0.0.1:1", "--token-path=/token"},
		"judge":   {"gateway", "--judge"},
	} {
		t.Run(name, func(t *testing.T) {
			settings := slices.Concat(args[1:], []string{"--listen=" + testworld.FreeAddress(t), "--admin-listen=" + testworld.FreeAddress(t)})
			server := inRoot(t, empty, append([]string{"/oauth-server", args[0], "--drain-delay=0s"}, settings...)...)
			var log bytes.Buffer
			server.Stderr = &log
			check.OK(t, server.Start())
			defer func() { _ = server.Process.Kill() }()
			check.Eventually(t, `health prints {"status":"ok"}`, func() bool {
				out, err := inRoot(t, empty, append([]string{"/oauth-server", "health"}, settings...)...).CombinedOutput()
				return err == nil && strings.TrimSpace(string(out)) == `{"status":"ok"}`
			})
			check.OK(t, server.Process.Signal(syscall.SIGTERM))
			if err := server.Wait(); err != nil {
				t.Errorf("%s ended with %v:\n%s", args[0], err, &log)
			}
		})
	}
}

// addData makes a directory data that is owned by the user nobody.
func addData(t *testing.T, empty string) {
	t.Helper()
	data := filepath.Join(empty, "data")
	check.OK(t, os.Mkdir(data, 0o700))
	check.OK(t, os.Chown(data, nobody, nobody))
	for dir := empty; dir != "/"; dir = filepath.Dir(dir) {
		check.OK(t, os.Chmod(dir, 0o755))
		if filepath.Dir(dir) == os.TempDir() {
			break
		}
	}
}

// build runs the go build of the Dockerfile in a directory, for the server only.
func build(t *testing.T, dir, binary string) {
	t.Helper()
	dockerfile := read(t, "Dockerfile")
	if !strings.Contains(dockerfile, "ENV CGO_ENABLED=0\n") {
		t.Fatal("the Dockerfile builds with cgo")
	}
	line := regexp.MustCompile(`go build (.*) -o /out/ \./cmd/oauth-server`).FindStringSubmatch(dockerfile)
	if line == nil {
		t.Fatal("the Dockerfile builds the server in another way")
	}
	args := append(strings.Fields("build -buildvcs=true "+strings.ReplaceAll(line[1], `"`, "")), "-o", binary, "./cmd/oauth-server")
	if i := slices.Index(args, "-ldflags=-s"); i >= 0 { // the quotes held this and the next together
		args[i] += " " + args[i+1]
		args = slices.Delete(args, i+1, i+2)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %v: %v\n%s", args, err, out)
	}
}

// inRoot returns a command that runs as the user nobody, with the root directory dir.
func inRoot(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...)
	cmd.Err = nil // the path is looked up in the new root, not here
	cmd.Path, cmd.Dir, cmd.Env = args[0], "/data", []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

// Only the server is built above; the other package is in another module.
func TestDockerfileBuildsPackagesThatExist(t *testing.T) {
	builds := regexp.MustCompile(`go (?:-C (\w+) )?build .* (\./\S+)\n`).FindAllStringSubmatch(read(t, "Dockerfile"), -1)
	if len(builds) != 2 {
		t.Fatalf("the Dockerfile builds %q, want the server and the traffic", builds)
	}
	for _, b := range builds {
		if _, err := os.Stat(filepath.Join(root, b[1], b[2], "main.go")); err != nil {
			t.Error(err)
		}
	}
}

// The image is built with the toolchain that go.mod names.
func TestDockerfileBuildsWithTheToolchain(t *testing.T) {
	toolchain := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindStringSubmatch(read(t, "go.mod"))
	if toolchain == nil {
		t.Fatal("go.mod names no toolchain")
	}
	if !strings.Contains(read(t, "Dockerfile"), "FROM golang:"+toolchain[1]+" AS build\n") {
		t.Errorf("the Dockerfile does not build with golang:%s", toolchain[1])
	}
	if !strings.Contains(read(t, "lab/go.mod"), toolchain[0]+"\n") {
		t.Errorf("lab/go.mod does not name %s", toolchain[0])
	}
}
