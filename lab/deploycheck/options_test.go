package deploycheck

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"oauth-server/internal/config"
)

// root is the directory of the project.
const root = "../.."

func read(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func load(t *testing.T, file string, flags ...config.FlagValue) *config.Config {
	t.Helper()
	c, err := config.Load(config.Sources{File: file, Flags: flags})
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return c
}

func TestOptionsInUseExist(t *testing.T) {
	flags, variables := []string{"config"}, []string{}
	for _, o := range config.Options() {
		flags, variables = append(flags, o.Name), append(variables, o.Env())
	}
	for _, file := range []string{"Dockerfile", "docker-compose.yml"} {
		text := read(t, file)
		for _, m := range regexp.MustCompile(`\s--([a-z][a-z-]+)=`).FindAllStringSubmatch(text, -1) {
			// The flags in the Dockerfile are Docker's.
			if file != "Dockerfile" && !slices.Contains(flags, m[1]) {
				t.Errorf("%s uses --%s, which the server does not have", file, m[1])
			}
		}
		for _, name := range regexp.MustCompile(`\bOAUTH_[A-Z_]+\b`).FindAllString(text, -1) {
			if !slices.Contains(variables, name) {
				t.Errorf("%s sets %s, which the server does not read", file, name)
			}
		}
	}
}
