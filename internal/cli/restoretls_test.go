package cli

import (
	"path/filepath"
	"testing"

	"oauth-server/internal/check"
)

// TestRestoreOverTLS: a backup is made and restored through a server with any certificate, and the server
// that starts afresh, with another key, is known again.
func TestRestoreOverTLS(t *testing.T) {
	cert, key := selfSigned(t, "auth.example")
	data := storeFile(t)
	runOK(t, "", on(data, "client create old")...)
	serveAt(t, data, "--tls-cert-file", cert, "--tls-key-file", key)
	backup := filepath.Join(t.TempDir(), "backup.db")
	runOK(t, "", on(data, "backup "+backup)...)
	runOK(t, "", on(data, "client create new")...)
	runOK(t, "", on(data, "restore "+backup+" --yes")...)
	check.Equal(t, "clients", clientIDs(t, data), []string{"old"})
}
