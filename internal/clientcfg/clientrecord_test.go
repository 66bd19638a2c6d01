package clientcfg

import (
	"reflect"
	"testing"
	"time"

	"oauth-server/internal/check"
)

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
