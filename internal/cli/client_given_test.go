package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// A secret that was made elsewhere is the client's, is not shown, and can be given again: what
// registers a client on its own may run twice.
func TestClientCreateWithAGivenSecret(t *testing.T) {
	data, file := storeFile(t), filepath.Join(t.TempDir(), "secret")
	shop := credentials{ClientID: "shop", ClientSecret: "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA="}
	check.OK(t, os.WriteFile(file, []byte(shop.ClientSecret+"\n"), 0o600))
	create := func(args ...string) []string {
		return append([]string{"client", "create", "--data", data, "--secret-file", file}, args...)
	}
	for range 2 {
		stdout, stderr, status := run(t, "", create("shop")...)
		if status != command.ExitOK || !strings.Contains(stdout, "shop") {
			t.Fatalf("status %d: %s%s", status, stdout, stderr)
		}
		if strings.Contains(stdout+stderr, shop.ClientSecret) {
			t.Errorf("the secret is shown: %s%s", stdout, stderr)
		}
	}
	server := serving(t, "serve", "--data", data)
	askToken(t, server.clients, shop)
	server.stop(t)

	check.OK(t, os.WriteFile(file, []byte(strings.ToLower(shop.ClientSecret)), 0o600))
	runFails(t, command.ExitFailed, "another secret", "", create("shop")...)
	runFails(t, command.ExitUsage, "public", "", create("app", "--public", "--redirect-uri", "http://127.0.0.1/")...)
	check.OK(t, os.WriteFile(file, []byte("hunter2"), 0o600))
	if stderr := runFails(t, command.ExitUsage, "openssl rand", "", create("web")...); strings.Contains(stderr, "hunter2") {
		t.Errorf("the secret is shown: %s", stderr)
	}
	check.OK(t, os.Remove(file))
	runFails(t, command.ExitFailed, "no such file", "", create("web")...)
}
