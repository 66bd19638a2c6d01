package strict_test

import (
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict"
)

// TestListOfNames: a set of names is read from a list, and each problem is reported at its index.
func TestListOfNames(t *testing.T) {
	type document struct {
		Limits []ratelimit.Limit `json:"limits"`
	}
	v, errs := strict.ParseYAML("limits.yaml", []byte(`limits:
  - grants: [ refresh_token, password ]
  - name: all
  - grants:
      - refresh_token
      - refresh
  - grants: []
  - grants: [ password, 1, [] ]
  - { name: x, grants: }
  - grants: password
`))
	check.OK(t, errs.Err())
	var got document
	origins := map[string]string{}
	errs = v.Decode(&got, origins)
	check.Equal(t, "grants", got.Limits[0].Grants, ratelimit.GrantRefresh|ratelimit.GrantPassword)
	check.Equal(t, "of all", got.Limits[1].Grants, 0)
	check.Equal(t, "origin", origins["limits[0].grants"], "limits.yaml:2")
	check.Equal(t, "origin of a name", origins["limits[2].grants[1]"], "limits.yaml:6")
	want := []string{
		`limits[2].grants[1]: "refresh" is not one of ` + strings.Join(ratelimit.GrantNames(), ", ") + ` (limits.yaml:6)`,
		"limits[3].grants: must not be empty: omit it to count all grants (limits.yaml:7)",
		"limits[4].grants[1]: must be text, not 1; write it in quotes (limits.yaml:8)",
		"limits[4].grants[2]: must be text, not a list (limits.yaml:8)",
		"limits[5].grants: must be a list, not null (limits.yaml:9)",
		`limits[6].grants: must be a list, not "password"; write [ "password" ] (limits.yaml:10)`,
	}
	found := []string{}
	for _, e := range errs {
		found = append(found, e.Error())
	}
	check.Equal(t, "errors", found, want)
}
