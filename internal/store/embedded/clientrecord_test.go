package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

func fullClient() clientcfg.Client {
	at := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	return clientcfg.Client{
		ID: "shop", Name: "Shop", SecretDigest: secret.Digest{0: 1, 31: 0xff}, SecretUsed: at.Add(time.Minute),
		Former:      clientcfg.FormerSecret{Digest: secret.Digest{0: 2, 31: 0xee}, Until: at.Add(24 * time.Hour), Used: at.Add(2 * time.Minute)},
		WithoutPKCE: true, ResourceServer: true, Grants: []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken},
		RedirectURIs: []string{"https://a.exam", "com.exam:/b"}, Scopes: []string{"r", "w"}, Audience: []string{"api"},
		CreatedAt: at, Stamp: secret.Stamp{ID: "st", Count: 9}, Version: 7,
	}
}

// TestUnreadableClientRecords: none is read as another client, and the reason is not that the file is
// damaged where a newer release wrote it.
func TestUnreadableClientRecords(t *testing.T) {
	c := fullClient()
	good := encodeClient(&c, 1)
	newer := bytes.Clone(good)
	newer[0] = clientVersion + 1
	flagged := append(binary.AppendUvarint([]byte{clientVersion}, clientFlags+1), good[2:]...)
	for _, test := range []struct {
		name   string
		value  []byte
		reason string
	}{
		{"of a newer version", newer, "a newer release wrote it, as version 2"},
		{"with a flag of a newer release", flagged, "a newer release wrote it, with the flags 0x100"},
		{"longer", append(bytes.Clone(good), 0), "1 bytes too many"},
		{"empty", nil, "ends early"},
		{"JSON", []byte(`{"grants":"all"}`), "version 123"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := decodeClient([]byte("shop"), test.value)
			if !errors.Is(err, clientcfg.ErrUnreadableClient) {
				t.Errorf("error %v, want ErrUnreadableClient", err)
			}
			check.ErrorSays(t, err, test.reason)
		})
	}
	for n := range good {
		if _, err := decodeClient([]byte("shop"), good[:n]); !errors.Is(err, clientcfg.ErrUnreadableClient) {
			t.Errorf("its first %d bytes: %v", n, err)
		}
	}
}
