package deploycheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"oauth-server/internal/config"
)

// made is what deploy/demo/make-secrets.sh writes, and the user that each file is for.
var made = map[string]uint32{
	"mongo/keyfile": 999, "mongo/root": 999, "mongo/oauth": 999, "server/mongodb-uri": nobody, "grafana/admin-password": 472,
}

func makeSecrets(t *testing.T, dir string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", filepath.Join(root, "deploy/demo/make-secrets.sh"), dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found := map[string]string{}
	for name, uid := range made {
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(text)
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || owner.Uid != uid || info.Mode().Perm() != 0o400 {
			t.Errorf("%s belongs to %d with mode %v, want %d with 0400", name, owner.Uid, info.Mode(), uid)
		}
	}
	return found
}

// The script runs as it does in the container, and a second time, as at the next start.
//
// Attack (deployment): Default passwords in Docker Compose. Secrets are random, made once, and
// mounted by their readers only. Also deploycheck.TestComposeSecretsAreMountedByTheirReaders.
func TestSecretsAreMadeOnce(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := t.TempDir()
	for name := range made {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	first := makeSecrets(t, dir)
	seen := map[string]string{}
	random := regexp.MustCompile(`^[0-9a-f]{64}$`)
	for name, text := range first {
		if name != "server/mongodb-uri" && !random.MatchString(text) {
			t.Errorf("%s holds %q, want 256 random bits", name, text)
		}
		if other, known := seen[text]; known {
			t.Errorf("%s and %s are the same", name, other)
		}
		seen[text] = name
	}
	for name, text := range makeSecrets(t, dir) {
		if text != first[name] {
			t.Errorf("%s was made again", name)
		}
	}
	cfg, err := config.LoadStore(config.Sources{Flags: []config.FlagValue{
		{Name: "mongodb-uri-file", Value: filepath.Join(dir, "server/mongodb-uri")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "mongodb://oauth:" + first["mongo/oauth"] + "@mongo:27017/?replicaSet=rs0"; cfg.Store.MongoDB.URI != want {
		t.Errorf("the servers use %s, want %s", cfg.Store.MongoDB.URI, want)
	}
}

// Each service mounts what it reads, read-only, and no password stands in the file.
func TestComposeSecretsAreMountedByTheirReaders(t *testing.T) {
	readers := map[string]string{
		"mongo": "mongo", "migrate": "server", "prepare": "server", "oauth-1": "server", "oauth-2": "server", "oauth-3": "server", "grafana": "grafana",
	}
	for name, s := range project(t).Services {
		mounted := ""
		for _, v := range s.Volumes {
			if whose, is := strings.CutSuffix(v.Source, "-secrets"); is && name != "secrets" {
				mounted = whose
				if !v.ReadOnly || v.Target != "/run/secrets" {
					t.Errorf("%s mounts %s at %s, read-only %v", name, v.Source, v.Target, v.ReadOnly)
				}
			}
		}
		if mounted != readers[name] {
			t.Errorf("%s mounts the secrets of %q, want %q", name, mounted, readers[name])
		}
		if _, waits := s.DependsOn["secrets"]; waits != (name == "mongo" || name == "grafana") {
			t.Errorf("%s waits for the secrets: %v", name, waits)
		}
		for variable, value := range s.Environment {
			if file, is := strings.CutPrefix(deref(value), "/run/secrets/"); is {
				if _, known := made[readers[name]+"/"+file]; !known {
					t.Errorf("%s: %s names %s, which is not made", name, variable, file)
				}
			} else if regexp.MustCompile(`(?i)pass|secret|_URI`).MatchString(variable) {
				t.Errorf("%s: %s is given as %q", name, variable, deref(value))
			}
		}
	}
	for _, m := range regexp.MustCompile(`secret\("(\w+)"\)`).FindAllStringSubmatch(read(t, "deploy/demo/mongo-ready.js"), -1) {
		if _, known := made["mongo/"+m[1]]; !known {
			t.Errorf("mongo-ready.js reads %s, which is not made", m[1])
		}
	}
	if mongo := project(t).Services["mongo"]; !strings.Contains(strings.Join(mongo.Command, " "), "--keyFile /run/secrets/keyfile") {
		t.Errorf("MongoDB runs without authentication: %q", mongo.Command)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
