package embedded

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

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

	fullJSON = `{"name":"Shop","secret_sha256":"01000000000000000000000000000000000000000000000000000000000000ff",
		"secret_used_at":"2026-01-01T00:01:00Z","former_secret":{"sha256":"02000000000000000000000000000000000000000000000000000000000000ee",
		"valid_until":"2026-01-02T00:00:00Z","used_at":"2026-01-01T00:02:00Z"},"without_pkce":true,"resource_server":true,
		"grants":["authorization_code","refresh_token"],"redirect_uris":["https://a.exam","com.exam:/b"],"scopes":["r","w"],
		"audience":["api"],"created_at":"2026-01-01T00:00:00Z","not_before":"2026-01-01T00:03:00Z","stamp":{"id":"st","n":9},"version":7}`
	publicJSON = `{"public":true,"grants":["password"],"created_at":"2026-01-01T00:00:00Z","version":1}`
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
		name, hex, json string
		want            clientcfg.Client
	}{
		{"with all fields", fullRecord, fullJSON, fullClient()},
		{"with those that each has", publicRecord, publicJSON, publicClient()},
		{"with labels", labelledRecord, "", labelledClient()},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.Equal(t, "written", hex.EncodeToString(encodeClient(&test.want, test.want.Version)), test.hex)
			value, err := hex.DecodeString(test.hex)
			check.OK(t, err)
			for _, stored := range [][]byte{value, []byte(test.json)} {
				if len(stored) == 0 {
					continue // no release wrote such a client as JSON
				}
				got, err := decodeClient([]byte("shop"), stored)
				check.OK(t, err)
				check.Equal(t, "read", got, test.want)
			}
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
		{"JSON of another kind", []byte(`{"grants":"all"}`), "cannot unmarshal string"},
		{"JSON cut short", []byte(`{`), "unexpected end"},
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

// TestFormat3: the clients of a file of an earlier release are read, and each is compact from its next
// change on. That release refuses the file, and can open the copy that was kept.
func TestFormat3(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients3.db")
	check.OK(t, os.WriteFile(path, unpack(t, "clients3.db.gz"), 0o600))
	before := compactClients(t, path)
	check.Equal(t, "compact at first", before, map[string]bool{"api": false, "desk": false, "shop": false, "web": false})

	s := mustOpen(t, path)
	read := map[string]clientcfg.Client{}
	_, err := s.Clients(t.Context(), func(r clientcfg.Record) {
		check.OK(t, r.Err)
		check.OK(t, r.Client.Validate())
		read[r.ID] = r.Client
	})
	check.OK(t, err)
	check.Equal(t, "clients", len(read), 4)
	shop, web := read["shop"], read["web"]
	check.Equal(t, "name", shop.Name, "Näh & Co")
	check.Equal(t, "former secret is kept", shop.Former.Digest.IsZero(), false)
	check.Equal(t, "redirect URIs", strings.Join(web.RedirectURIs, " "), "http://127.0.0.1/callback https://web.example.com/cb")
	check.Equal(t, "api was revoked", read["api"].NotBefore.IsZero(), false)

	check.OK(t, s.UpdateClient(t.Context(), web))
	used := shop.CreatedAt.Add(time.Hour)
	check.OK(t, s.RecordUses(t.Context(), []clientcfg.SecretUse{{ClientID: "shop", Digest: shop.Former.Digest, At: used}}))
	shop.Former.Used = used
	web.Version++
	for _, want := range []clientcfg.Client{shop, web, read["api"]} {
		got, err := s.Client(t.Context(), want.ID)
		check.OK(t, err)
		check.Equal(t, "client", got, want)
	}
	check.OK(t, s.Close())
	check.Equal(t, "compact afterwards", compactClients(t, path), map[string]bool{"api": false, "desk": false, "shop": true, "web": true})
	check.Equal(t, "compact in the copy", compactClients(t, path+".format3"), before)
	change(t, path, func(tx *bolt.Tx) error {
		found, err := checkFormat(tx)
		check.Equal(t, "format", found, format)
		return err
	})
}

// compactClients reports which records of clients are compact.
func compactClients(t *testing.T, path string) map[string]bool {
	t.Helper()
	compact := map[string]bool{}
	change(t, path, func(tx *bolt.Tx) error {
		return tx.Bucket(buckets[clients]).ForEach(func(id, value []byte) error {
			compact[string(id)] = value[0] == clientVersion
			return nil
		})
	})
	return compact
}
