package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// places are where commands find clients and users: in the data file, and at the server that holds it.
func places(t *testing.T, test func(t *testing.T, on func(args string) []string)) {
	t.Helper()
	for _, place := range []string{"store", "server"} {
		t.Run(place, func(t *testing.T) {
			data := storeFile(t)
			if place == "server" {
				serving(t, "serve", "--data", data)
			}
			test(t, func(args string) []string { return append(strings.Fields(args), "--data", data) })
		})
	}
}

func TestClientLabels(t *testing.T) {
	places(t, func(t *testing.T, on func(args string) []string) {
		t.Helper()
		var made credentials
		runJSON(t, &made, "", on("client create shop --label team=payments --label zone=a")...)
		runJSON(t, &made, "", on("client create plain")...)
		file := filepath.Join(t.TempDir(), "clients.jsonl")
		hash := strings.Repeat("ab", 32)
		check.OK(t, os.WriteFile(file, []byte(`{"client_id": "moved", "client_secret_hash": "`+hash+`", "labels": {"team": "payments"}}`), 0o600))
		runOK(t, "", on("client import "+file)...)

		type labelled struct {
			ClientID string            `json:"client_id"`
			Labels   map[string]string `json:"labels"`
		}
		var changed labelled
		runJSON(t, &changed, "", on("client update shop --label zone=b --label note=")...)
		check.Equal(t, "others stay", changed.Labels, map[string]string{"team": "payments", "zone": "b", "note": ""})
		changed = labelled{}
		runJSON(t, &changed, "", on("client update shop --remove-label note --remove-label gone --name Shop")...)
		check.Equal(t, "removed", changed.Labels, map[string]string{"team": "payments", "zone": "b"})
		stdout, _, _ := run(t, "", on("client show shop")...)
		check.Equal(t, "shown", strings.Contains(table(stdout), "labels team=payments zone=b\n"), true)

		for filter, want := range map[string]string{
			"": "moved plain shop", " --label team": "moved shop", " --label team=payments --label zone=b": "shop",
			" --label zone=a": "", " --label team --prefix m": "moved",
		} {
			var list []labelled
			runJSON(t, &list, "", on("client list"+filter)...)
			ids := []string{}
			for _, c := range list {
				ids = append(ids, c.ClientID)
			}
			check.Equal(t, filter, strings.Join(ids, " "), want)
		}
		stdout, _, _ = run(t, "", on("client list --label zone")...)
		want := regexp.MustCompile(`^CLIENT ID KIND GRANTS SCOPES CREATED LABELS\n` +
			`shop confidential client_credentials - 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ team=payments zone=b\n$`)
		if text := table(stdout); !want.MatchString(text) {
			t.Errorf("%s", text)
		}
	})
}

func TestInvalidLabelsAreUsageErrors(t *testing.T) {
	for args, says := range map[string]string{
		"client create shop --label team":                  `labels.team: "team" is not name=value`,
		"client create shop --label team=a --label team=b": "labels.team: is a duplicate",
		"client update shop --label Team=a":                `the name "Team" must have`,
		"client update shop --remove-label team=a":         "give the name of the label, without a value",
		"client list --label team=a/b":                     "--label: the value",
		"client list --label=":                             "--label: the name",
	} {
		runFails(t, command.ExitUsage, says, "", append(strings.Fields(args), "--data", "no-such.db")...)
	}
}
