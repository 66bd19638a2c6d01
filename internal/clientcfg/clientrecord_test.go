package clientcfg

import (
	"fmt"
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

// TestClientRecord: a client with any single field set is stored and read back unchanged.
func TestClientRecord(t *testing.T) {
	fields := reflect.TypeFor[Client]()
	for i := range fields.NumField() {
		c := Client{ID: "shop", Grants: []Grant{ClientCredentials}}
		set(t, reflect.ValueOf(&c).Elem().Field(i))
		c.SecretUsed, c.Former.Used = time.Time{}, time.Time{} // in their own table
		r, err := EncodeClient(&c)
		check.OK(t, err)
		got, err := decodeClient(&r)
		check.OK(t, err)
		check.Equal(t, fields.Field(i).Name, got, c)
	}
}

func BenchmarkDecodeClient(b *testing.B) {
	c := usualClient(1)
	r, err := EncodeClient(&c)
	check.OK(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if got := readClient(&store.Record{Key: r.Key, Value: r.Value}); got.Err != nil {
			b.Fatal(got.Err)
		}
	}
}
