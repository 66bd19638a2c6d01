package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// Secrets of signing keys, as openssl rand -base64 32 prints them.
const (
	keysSecret  = "w2S4sO0xXQ8lN0i1kY5vFQ8m3Qb2JmZ7d9sV4cT6uRk="
	otherSecret = "Jr7p0mYk2Jc9x8WqL5n3vB1tZ6sD4fG7hK9aE2uO0iM="
)

// keyFile returns a file with the secret.
func keyFile(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	check.OK(t, os.WriteFile(path, []byte(secret+"\n"), 0o600))
	return path
}

func publishedKeys(t *testing.T, address string) (kids []string) {
	t.Helper()
	var set struct{ Keys []struct{ Kid string } }
	check.OK(t, json.Unmarshal([]byte(page(t, address+"/.well-known/jwks.json")), &set))
	for _, k := range set.Keys {
		kids = append(kids, k.Kid)
	}
	return kids
}

// A server that cannot decrypt its keys does not start, says what to do, and makes no new key.
func TestServerWithoutItsSecretDoesNotStart(t *testing.T) {
	data, secret := storeFile(t), keyFile(t, keysSecret)
	p := serving(t, "serve", "--data", data, "--keys-secret-file", secret)
	before := publishedKeys(t, p.clients)
	p.stop(t)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no secret":      {nil, "it is encrypted, but no secret is set: set its secret in OAUTH_KEYS_SECRET or keys.secret_file"},
		"another secret": {[]string{"--keys-secret-file", keyFile(t, otherSecret)}, "it is encrypted with a secret that is not set: add its secret after a comma in OAUTH_KEYS_SECRET"},
	} {
		t.Log(name)
		runFails(t, command.ExitFailed, tc.want, "", anywhere(append([]string{"serve", "--data", data}, tc.args...))...)
	}
	p = serving(t, "serve", "--data", data, "--keys-secret-file", keyFile(t, otherSecret+","+keysSecret))
	check.Equal(t, "keys after the secret was changed", publishedKeys(t, p.clients), before)
	p.stop(t)
	var keys []shownKey
	runJSON(t, &keys, "", "keys", "list", "--data", data, "--keys-secret-file", keyFile(t, otherSecret))
	if len(keys) != 1 || keys[0].ID != before[0] || keys[0].Encryption != "current" || keys[0].State != "signs" {
		t.Errorf("%+v", keys)
	}
}

func TestKeysCommands(t *testing.T) {
	data, secret := storeFile(t), keyFile(t, keysSecret)
	runOK(t, "", "client", "create", "shop", "--data", data)
	check.Equal(t, "without keys", runOK(t, "", "keys", "list", "--data", data, "-o", "json"), "[]\n")
	for _, yes := range []string{"--yes", "--yes=false"} {
		runFails(t, command.ExitFailed, "oauth-server: there is no signing key yet", "", "keys", "rotate", "--now", yes, "--data", data)
	}
	p := serving(t, "serve", "--data", data)
	old := publishedKeys(t, p.clients)[0]
	p.stop(t)

	if out, _, _ := run(t, "", "keys", "list", "--data", data); !strings.Contains(out, "ENCRYPTION\n"+old+"  ES256      1           signs") || !strings.HasSuffix(out, "  none\n") {
		t.Errorf("a key in clear:\n%s", out)
	}
	has(t, runSays(t, "", "keys", "rotate", "--data", data), "is stored unencrypted, like the previous key")
	runFails(t, command.ExitFailed, "already published", "", "keys", "rotate", "--data", data)
	var listed []shownKey
	runJSON(t, &listed, "", "keys", "list", "--data", data)
	if len(listed) != 2 || listed[0].State != "next" || listed[1].State != "signs" || time.Until(listed[0].ActiveFrom) < 23*time.Hour {
		t.Errorf("%+v", listed)
	}
	for answer, want := range map[string]string{"n\n": "nothing was changed", "": "confirm with --yes"} {
		has(t, runFails(t, command.ExitFailed, want, answer, "keys", "rotate", "--now", "--data", data), "All existing access tokens become invalid")
	}
	runFails(t, command.ExitUsage, "", "", "keys", "rotate", "--secret-lost", "--data", data)

	p = serving(t, "serve", "--data", data, "--keys-secret-file", secret) // encrypts them
	p.stop(t)
	for args, want := range map[string]string{
		"": "no secret is set", "--keys-secret-file " + keyFile(t, otherSecret): "a secret that is not set",
	} {
		hasNot(t, runFails(t, command.ExitFailed, want, "", on(data, "keys rotate --now --yes "+args)...), "invalid")
	}
	var answer replaced
	runJSON(t, &answer, "y\n", "keys", "rotate", "--now", "--data", data, "--keys-secret-file", secret)
	if len(answer.Made) != 1 || answer.Made[0].Encryption != "current" || len(answer.Withdrawn) != 2 || !slices.Contains(answer.Withdrawn, old) {
		t.Errorf("%+v", answer)
	}
	out, stderr, status := run(t, "", "keys", "rotate", "--now", "--yes", "--secret-lost", "--data", data, "--keys-secret-file", keyFile(t, otherSecret))
	if status != command.ExitOK || !strings.Contains(out, "withdrew "+answer.Made[0].ID) || stderr != "Servers refuse all existing access tokens within two seconds. Clients must get new ones.\n" {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
}

// introspected asks a server whether a token is valid.
func introspected(t *testing.T, server string, as credentials, token string) bool {
	t.Helper()
	status, body := postForm(t, server+"/introspect", as, url.Values{"token": {token}})
	var answer struct{ Active bool }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	return answer.Active
}

// Two instances on one database: soon after keys rotate --now, all refuse the tokens of the old key,
// publish the new one only, and sign with it. They look for changes every 1.6 s; were it a minute, as for
// other changes of keys, this would fail.
//
// Attack (keys): A leaked signing key. `keys rotate --now` replaces all keys, on all instances.
// Also keys.TestNowWithdrawsAllKeys.
func TestWithdrawnKeyIsRefusedEverywhere(t *testing.T) {
	db, shop := databaseWithShop(t)
	secret := []string{"--keys-secret-file", keyFile(t, keysSecret)}
	var servers []string
	for range 2 {
		args := append([]string{"serve", "--issuer", "http://127.0.0.1:9096"}, secret...)
		servers = append(servers, serving(t, append(args, db...)...).clients)
	}
	stolen := askToken(t, servers[0], shop)
	old := publishedKeys(t, servers[0])
	for _, s := range servers {
		check.Equal(t, "a good token", introspected(t, s, shop, stolen), true)
	}
	var answer replaced
	runJSON(t, &answer, "", append(append([]string{"keys", "rotate", "--now", "--yes"}, secret...), db...)...)
	check.Equal(t, "withdrawn", answer.Withdrawn, old)
	for _, s := range servers {
		check.Eventually(t, "the old key is withdrawn", func() bool { return !introspected(t, s, shop, stolen) })
	}
	for _, s := range servers {
		check.Equal(t, "published", publishedKeys(t, s), []string{answer.Made[0].ID})
		token := askToken(t, s, shop)
		for _, other := range servers {
			check.Equal(t, "a new token", introspected(t, other, shop, token), true)
		}
	}
}
