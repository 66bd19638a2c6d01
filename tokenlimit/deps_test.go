package tokenlimit_test

import (
	"os/exec"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// mostPackages is the largest number of packages of this module that a program with tokenlimit may
// link.
const mostPackages = 12

// TestDependencies checks that programs with tokenlimit link neither this server nor the libraries
// that only the server needs.
func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}}{{with .Module}}{{if .Main}} own{{end}}{{end}}", ".").Output()
	check.OK(t, err)
	var own []string
	for dep := range strings.Lines(string(out)) {
		dep, ours := strings.CutSuffix(strings.TrimSpace(dep), " own")
		if ours {
			own = append(own, dep)
		}
		for _, unwanted := range []string{"echo", "go-oauth2", "yaml", "zxcvbn", "grpc", "bbolt", "mongo", "internal/store", "internal/grants", "internal/httpapi"} {
			if strings.Contains(dep, unwanted) {
				t.Errorf("tokenlimit links %s", dep)
			}
		}
	}
	if len(own) < 2 || len(own) > mostPackages {
		t.Errorf("tokenlimit links %d packages of this module, at most %d are wanted: %v", len(own), mostPackages, own)
	}
}
