package embedded

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// Records as they are in the files of releases. They must never be changed: a file of each release has
// to stay readable.
const (
	fullRecord = "017e" + "0e" + "0453686f70" + "0000019b76daa800" +
		"02" + "12617574686f72697a6174696f6e5f636f6465" + "0d726566726573685f746f6b656e" +
		"02" + "0e68747470733a2f2f612e6578616d" + "0b636f6d2e6578616d3a2f62" +
		"02" + "0172" + "0177" + "01" + "03617069" + "0273" + "7409" +
		"01000000000000000000000000000000000000000000000000000000000000ff" + "0000019b76db9260" +
		"02000000000000000000000000000000000000000000000000000000000000ee" + "0000019b7c010400" + "0000019b76dc7cc0" +
		"0000019b76dd6720"
	publicRecord = "0101" + "02" + "00" + "0000019b76daa800" + "01" + "0870617373776f7264" + "00" + "00" + "00" + "00" + "00"

	labelledRecord = "01c002" + "02" + "00" + "0000019b76daa800" + "01" + "0870617373776f7264" + "00" + "00" + "00" + "00" + "00" +
		"0000019b76db1d30" + "13" + "6e6f74653d" + "0a" + "7465616d3d7061796d656e7473"
)

func fullClient() clientcfg.Client {
	at := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	return clientcfg.Client{
		ID: "shop", Name: "Shop", SecretDigest: secret.Digest{0: 1, 31: 0xff}, SecretUsed: at.Add(time.Minute),
		Former:      clientcfg.FormerSecret{Digest: secret.Digest{0: 2, 31: 0xee}, Until: at.Add(24 * time.Hour), Used: at.Add(2 * time.Minute)},
		WithoutPKCE: true, ResourceServer: true, Grants: []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.RefreshToken},
		RedirectURIs: []string{"https://a.exam", "com.exam:/b"}, Scopes: []string{"r", "w"}, Audience: []string{"api"},
		CreatedAt: at, NotBefore: at.Add(3 * time.Minute), Stamp: secret.Stamp{ID: "st", Count: 9}, Version: 7,
	}
}

func publicClient() clientcfg.Client {
	return clientcfg.Client{
		ID: "shop", Public: true, Grants: []clientcfg.Grant{clientcfg.Password},
		CreatedAt: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), Version: 1,
	}
}

func labelledClient() clientcfg.Client {
	c := publicClient()
	c.Public, c.NotBefore, c.Labels = false, c.CreatedAt.Add(30*time.Second), "note=\nteam=payments"
	return c
}

// TestReleasedClientRecords: what releases have written reads as it did, and this one writes it so.
func TestReleasedClientRecords(t *testing.T) {
	for _, test := range []struct {
		name, hex string
		want      clientcfg.Client
	}{
		{"with all fields", fullRecord, fullClient()},
		{"with those that each has", publicRecord, publicClient()},
		{"with labels", labelledRecord, labelledClient()},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.Equal(t, "written", hex.EncodeToString(encodeClient(&test.want, test.want.Version)), test.hex)
			value, err := hex.DecodeString(test.hex)
			check.OK(t, err)
			got, err := decodeClient([]byte("shop"), value)
			check.OK(t, err)
			check.Equal(t, "read", got, test.want)
		})
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
		{"with a flag of a newer release", flagged, "a newer release wrote it, with the flags 0x200"},
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
