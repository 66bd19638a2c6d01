package cli

import (
	"os"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

const (
	keycloakLogin = `{"time":1763280000000,"type":"CLIENT_LOGIN","realmId":"shop","clientId":"shop"}` + "\n"
	keycloakOther = `{"time":1763280000000,"type":"LOGIN","realmId":"shop","clientId":"shop"}` + "\n"
)

// TestSimulateLines: it is said how many entries were left out, also if that was all of them.
func TestSimulateLines(t *testing.T) {
	inTemp(t, map[string]string{
		"some.json": keycloakLogin + keycloakOther + keycloakLogin, "none.json": keycloakOther + keycloakOther, "all.json": keycloakLogin,
		"bad.json": keycloakLogin + "{\n", "other.json": `{"date":"2026-11-16T09:00:00Z","type":"s","log_id":"1"}`,
	})
	for args, want := range map[string]string{
		"some.json": "Reading some.json as keycloak.\nOf 3 entries, 2 are token requests, 1 is skipped as something else.\n",
		"all.json":  "Reading all.json as keycloak.\n",
		"bad.json":  "Of 2 entries, 1 is a token request, 1 cannot be read (50 %):\n  bad.json:2: ",
		"none.json": "Of 2 entries, 0 are token requests, 2 are skipped as something else.\n" +
			"oauth-server: no token requests in none.json (read as keycloak); if the format is wrong, give --format",
		"other.json --format auth0":  "Of 1 entry, 0 are token requests, 1 is skipped as something else.\noauth-server: no token requests in other.json (read as auth0);",
		"all.json --format auth0":    "Of 1 entry, 0 are token requests, 1 cannot be read (100 %):\n  all.json:1: line: is not an entry of a tenant log",
		"all.json some.json -o text": "Of 4 entries, 3 are token requests, 1 is skipped as something else.\n",
	} {
		_, stderr, _ := run(t, "", append([]string{"simulate"}, strings.Fields(args)...)...)
		has(t, stderr, want)
		check.Equal(t, args+": said", strings.Contains(stderr, "entries, ") || strings.Contains(stderr, "entry, "), !strings.HasPrefix(args, "all.json") || strings.Contains(args, " -"))
	}
}

// TestSimulateStrict: a log that was not read to its end has no answer.
func TestSimulateStrict(t *testing.T) {
	inTemp(t, map[string]string{"log.csv": burst(3, "shop", "ada") + "yesterday,shop,ada,refresh_token\n"})
	for _, output := range []string{"text", "json"} {
		stdout, stderr, status := run(t, "", "simulate", "log.csv", "--strict", "-o", output, "--report", "out.html", "--target", "50%", "--write", "out.yaml")
		check.Equal(t, "status", status, command.ExitFailed)
		check.Equal(t, "output", stdout, "")
		has(t, stderr, "Reading log.csv as csv.\noauth-server: stopped at the first unreadable line: log.csv:5")
	}
	left, err := os.ReadDir(".")
	check.OK(t, err)
	check.Equal(t, "files", len(left), 1)
}

// TestSimulateEmptyColumns: a column in which no client has anything is left out.
func TestSimulateEmptyColumns(t *testing.T) {
	inTemp(t, map[string]string{"log.csv": burst(3, "shop", "ada") + strings.TrimPrefix(burst(1, "web", "bob"), "time,client,user,grant\n")})
	text, _, _ := run(t, "", "simulate", "log.csv")
	has(t, text, "REFUSED  USERS HIT  WASTED\n")
	text, _, _ = run(t, "", "simulate", "log.csv", "--limit", "2/60s", "--target", "50%")
	has(t, text, "leaves 50 % of the clients untouched")
	const narrow = "settings: { default: { user: [ { requests: 2, window: 60s } ] } }"
	check.OK(t, os.WriteFile("limits.yaml", []byte(narrow), 0o600))
	text, _, _ = run(t, "", "simulate", "log.csv", "--policies", "limits.yaml")
	has(t, text, "USERS HIT  WORST MINUTE               BLOCKED  WAIT  WASTED\n", "web     1         1         0       0 %      0          -")
}

// TestSimulateOne: one is not written as many, and answers that are all the same not as a range.
func TestSimulateOne(t *testing.T) {
	inTemp(t, map[string]string{"log.csv": "time,client,user,grant\n2026-11-16T09:00:00Z,shop,,refresh_token\n2026-11-17T09:00:00Z,shop,ada,refresh_token\n"})
	text, stderr, _ := run(t, "", "simulate", "log.csv", "--target", "100%")
	has(t, stderr, "1 user request has no user and is counted for the client itself.\n")
	has(t, text, "Leaving out any one of the 2 days, it is 1.\n")
}
