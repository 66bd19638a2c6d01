package clientcfg

import (
	"fmt"
	"reflect"
	"testing"
	"time"
	"unique"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg/labels"
	"oauth-server/internal/secret"
)

// TestEntries: every field comes back, including fields added in the future, and no client gets
// values of another one. Clients of two kinds have two common parts in total, whichever fields the
// kinds differ in.
func TestEntries(t *testing.T) {
	const clients = 1000
	kinds := reflect.TypeFor[Client]()
	for i := range kinds.NumField() {
		name := kinds.Field(i).Name
		distinct := map[unique.Handle[common]]bool{}
		for n := range clients {
			id := fmt.Sprint(n)
			c := Client{
				ID: id, Grants: []Grant{ClientCredentials}, Scopes: []string{"read", id, ""}, Audience: []string{id, "line\nline"},
				Labels: labels.Set("contract=" + id),
			}
			if n%2 == 0 {
				set(t, reflect.ValueOf(&c).Elem().Field(i))
			}
			e := newEntry(&c)
			distinct[e.common] = true
			c.SecretUsed, c.Former.Used = time.Time{}, time.Time{}
			if got := e.client(); !reflect.DeepEqual(got, &c) {
				t.Fatalf("with another %s, the client is\n%+v, want\n%+v", name, got, &c)
			}
		}
		if len(distinct) > 2 {
			t.Errorf("%d clients of which half have another %s: %d common parts, want 2 at most", clients, name, len(distinct))
		}
	}
}

// TestFormerSecretsThatEnded: they are left out, and cost nothing, once no clock can consider them
// valid.
func TestFormerSecretsThatEnded(t *testing.T) {
	for ago, want := range map[time.Duration]int{-time.Minute: 9, time.Minute: 9, 25 * time.Hour: 1} {
		distinct := map[unique.Handle[common]]bool{}
		for n := range 9 {
			former := FormerSecret{Digest: secret.DigestOf(fmt.Sprint(n)), Until: time.Now().Add(-ago), Used: time.Now()}
			e := newEntry(&Client{ID: fmt.Sprint(n), Former: former})
			distinct[e.common] = true
			check.Equal(t, fmt.Sprintf("kept, ended %s ago", ago), e.client().Former.Digest == former.Digest, want > 1)
		}
		check.Equal(t, fmt.Sprintf("common parts, ended %s ago", ago), len(distinct), want)
	}
}

// set sets a client field of any type.
func set(t *testing.T, v reflect.Value) {
	t.Helper()
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = "other"
	case *bool:
		*p = true
	case *int64:
		*p = 7
	case *[]string:
		*p = []string{"other"}
	case *[]Grant:
		*p = []Grant{Password}
	case *time.Time:
		*p = time.Unix(1e9, 0).UTC()
	case *secret.Digest:
		*p = secret.DigestOf("other")
	case *secret.Stamp:
		*p = secret.Stamp{ID: "other"}
	case *labels.Set:
		*p = "team=other"
	case *FormerSecret:
		*p = FormerSecret{Digest: secret.DigestOf("other"), Until: time.Unix(1e10, 0).UTC()}
	default:
		t.Fatalf("a field has the type %v: set it here", v.Type())
	}
}
