package clientcfg_test

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/clientcfg"
)

// FuzzRedirectURI: what can be registered leads nowhere but to https, a loopback address or an app.
func FuzzRedirectURI(f *testing.F) {
	for _, seed := range []string{
		"https://app.example/cb?tenant=a%20b", "http://127.0.0.1:0/cb", "http://[::1]:7777/cb", "com.example.app:/cb", "javascript:alert(1)",
		"https://user@app.example/", "https://*.example/", "http://127.0.0.1.evil.example/", "https:///cb", "https://app.example/#", "data:text/html,x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if clientcfg.ValidateRedirectURI(raw) != nil {
			return
		}
		u, err := url.Parse(raw)
		if err != nil || strings.ContainsAny(raw, "# \r\n\t\"<>\\") || u.User != nil {
			t.Fatalf("%q is accepted: %v", raw, err)
		}
		loopback := u.Scheme == "http" && clientcfg.IsLoopback(u.Hostname())
		if u.Scheme != "https" && !loopback && !strings.Contains(u.Scheme, ".") {
			t.Errorf("%q is accepted", raw)
		}
		if u.Hostname() == "" && !strings.Contains(u.Scheme, ".") {
			t.Errorf("%q names no host", raw)
		}
	})
}

// FuzzDecodePolicySet: what is read from a store is written so that it reads back the same.
func FuzzDecodePolicySet(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"version":3,"settings":{"mode":"off","canary_percent":12.5}}`, `{"clients":{"shop":{"trusted":true,"note":"x"}},"resets":[]}`,
		`{"candidates":{"_default":{"user":[{"name":"a","requests":1,"window":"1s"}],"since":"2026-01-01T00:00:00Z"}}}`, `{"unknown":1}`, `[`, `{"version":1,"version":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		set, err := clientcfg.DecodePolicySet(stored)
		if err != nil {
			if !errors.Is(err, clientcfg.ErrUnreadable) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		written, err := json.Marshal(set)
		if err != nil {
			t.Fatalf("%s was read, and cannot be written: %v", stored, err)
		}
		again, err := clientcfg.DecodePolicySet(written)
		if err != nil {
			t.Fatalf("%s was read, written as %s, and then not read: %v", stored, written, err)
		}
		rewritten, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(written), string(rewritten)); diff != "" {
			t.Errorf("%s comes back changed:\n%s", stored, diff)
		}
	})
}
