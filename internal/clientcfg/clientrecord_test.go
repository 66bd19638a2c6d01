package clientcfg

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

func usualClient(i int) Client {
	id := fmt.Sprintf("client-%07d", i)
	return Client{
		ID: id, Name: fmt.Sprint("Application number ", i), SecretDigest: secret.DigestOf(id), Stamp: secret.NewStamp(),
		Grants: []Grant{AuthorizationCode, RefreshToken}, Scopes: []string{"profile", fmt.Sprint("area-", i%50)},
		RedirectURIs: []string{fmt.Sprintf("https://app-%d.example.com/oauth/callback?a=1&b=2", i)},
		CreatedAt:    time.Unix(1e9, 0).UTC(), Version: 1,
	}
}

// TestUsualClients: a client with any one field set is read as json would, and without it.
func TestUsualClients(t *testing.T) {
	fields := reflect.TypeFor[Client]()
	for i := range fields.NumField() {
		c := Client{ID: "shop", Grants: []Grant{ClientCredentials}}
		set(t, reflect.ValueOf(&c).Elem().Field(i))
		c.SecretUsed, c.Former.Used = time.Time{}, time.Time{} // in a table of their own
		r, err := EncodeClient(&c)
		check.OK(t, err)
		got, err := decodeClient(&r)
		check.OK(t, err)
		check.Equal(t, fields.Field(i).Name, got, c)
		var usual, strict clientDoc
		if usual.decodeUsual(string(r.Value)) != (c.Former == FormerSecret{}) {
			t.Errorf("%s: is usual", r.Value)
		}
		check.OK(t, decodeStrictly(r.Value, &strict))
		if c.Former == (FormerSecret{}) {
			check.Equal(t, "usual", usual, strict)
		}
	}
}

// FuzzClientRecord: what is read without reflection is what json reads.
func FuzzClientRecord(f *testing.F) {
	c := usualClient(1)
	c.Labels = "a=b\nc="
	r, err := EncodeClient(&c)
	check.OK(f, err)
	f.Add(r.Value)
	for range 200 {
		value := []byte(string(r.Value))
		value[rand.IntN(len(value))] = `"{}[]:,\0tx`[rand.IntN(11)] // damages a text
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var usual, strict clientDoc
		if !json.Valid(value) || !usual.decodeUsual(string(value)) { // no store has anything else
			return
		}
		if err := decodeStrictly(value, &strict); err != nil {
			t.Fatalf("%q is read: %v", value, err)
		}
	})
}

func BenchmarkDecodeClient(b *testing.B) {
	c := usualClient(1)
	r, err := EncodeClient(&c)
	check.OK(b, err)
	b.Run("usual", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if got := readClient(&store.Record{Key: r.Key, Value: r.Value}); got.Err != nil {
				b.Fatal(got.Err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			var d clientDoc
			check.OK(b, decodeStrictly(r.Value, &d))
		}
	})
}
