package serve

import (
	"context"
	"io"
	"log"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"oauth-server/internal/app"
	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
	"oauth-server/internal/secret"
)

// TestProcessesAreInTheMemoryLimit that the environment sets.
func TestProcessesAreInTheMemoryLimit(t *testing.T) {
	old := debug.SetMemoryLimit(1 << 30)
	defer debug.SetMemoryLimit(old)
	for others, want := range map[int64]int64{0: 1 << 30, 1 << 28: 3 << 28, 1 << 40: 1 << 29} {
		restore := shareMemory(others)
		check.Equal(t, "limit", debug.SetMemoryLimit(-1), want)
		restore()
		check.Equal(t, "limit afterwards", debug.SetMemoryLimit(-1), int64(1<<30))
	}
}

func TestHashesPasswords(t *testing.T) {
	server, gateway := config.Default(), config.Default()
	gateway.Gateway.Upstream = "https://idp.example.com"
	here := app.Options{}
	separately := app.Options{Separate: func(secret.Task) ([]byte, error) { return nil, nil }}
	check.Equal(t, "server", hashesPasswords(server, &here), true)
	check.Equal(t, "server with processes for it", hashesPasswords(server, &separately), false)
	check.Equal(t, "gateway", hashesPasswords(gateway, &here), false)
}

// TestGatewayDemoStopped: a stop before the upstream of the demo listens is no failure.
func TestGatewayDemoStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	c := &command.Env{Out: io.Discard, ErrOut: io.Discard}
	check.OK(t, gatewayDemo(ctx, c, config.Sources{}))
}

// TestMessagesOfLibraries checks that they are in the format of the log, without the data of a peer.
func TestMessagesOfLibraries(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	cfg := config.Default()
	cfg.Log.Format, cfg.Listen, cfg.AdminListen, cfg.Passwords.Processes = "json", "127.0.0.1:0", "", "off"
	cfg.Store.Embedded.Path = filepath.Join(t.TempDir(), "test.db")
	var out check.Buffer
	_ = runServer(ctx, &command.Env{Out: io.Discard, ErrOut: &out}, cfg, app.Options{}) // it is stopped at once
	log.Printf("Unsolicited response on an idle channel starting with %q; err=%v", `{"access_token":"s3cret"}`, nil)
	check.Equal(t, "line", strings.Contains(out.String(), `"level":"WARN","msg":"message of a library","text":"Unsolicited response on an idle channel starting with \"…\"; err=<nil>"}`), true)
	check.Equal(t, "data", strings.Contains(out.String(), "s3cret"), false)
}
