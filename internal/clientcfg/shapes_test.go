package clientcfg

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg/labels"
	"oauth-server/internal/secret"
)

// TestShapesAreShared: clients of two kinds have two shapes in total, whichever fields the kinds
// differ in, including fields added in the future. Clients with a former secret each have their own
// shape, and do not keep the others from sharing theirs. No client gets values of another one.
func TestShapesAreShared(t *testing.T) {
	const clients = 1000
	kinds := reflect.TypeFor[Client]()
	for i := range kinds.NumField() {
		name := kinds.Field(i).Name
		s, distinct := shapes{}, map[*shape]bool{}
		for n := range clients {
			c := Client{ID: fmt.Sprint(n), Grants: []Grant{ClientCredentials}, Scopes: []string{"read", "write"}}
			if n%2 == 0 {
				set(t, reflect.ValueOf(&c).Elem().Field(i))
			}
			e := s.entry(c)
			distinct[e.shape] = true
			c.SecretUsed, c.Former.Used = time.Time{}, time.Time{}
			if got := e.client(); !reflect.DeepEqual(got, &c) {
				t.Fatalf("with another %s, the client is\n%+v, want\n%+v", name, got, &c)
			}
		}
		if len(distinct) > 2 {
			t.Errorf("%d clients of which half have another %s: %d shapes, want 2 at most", clients, name, len(distinct))
		}
	}
	s, distinct := shapes{}, map[*shape]bool{}
	for n := range clients {
		c := Client{ID: fmt.Sprint(n), Grants: []Grant{ClientCredentials}}
		if n%2 == 0 {
			c.Former = FormerSecret{Digest: secret.DigestOf(c.ID), Until: time.Unix(1e10, 0)}
		}
		distinct[s.entry(c).shape] = true
	}
	if want := clients/2 + 1; len(distinct) > want {
		t.Errorf("%d clients of which half have a former secret: %d shapes, want %d", clients, len(distinct), want)
	}
}

// TestFormerSecretsThatEnded: they are left out, and cost nothing, once no clock can consider them
// valid.
func TestFormerSecretsThatEnded(t *testing.T) {
	for ago, want := range map[time.Duration]int{-time.Minute: 9, time.Minute: 9, 25 * time.Hour: 1} {
		s, distinct := shapes{}, map[*shape]bool{}
		for n := range 9 {
			former := FormerSecret{Digest: secret.DigestOf(fmt.Sprint(n)), Until: time.Now().Add(-ago), Used: time.Now()}
			e := s.entry(Client{ID: fmt.Sprint(n), Former: former})
			distinct[e.shape] = true
			check.Equal(t, fmt.Sprintf("kept, ended %s ago", ago), e.client().Former.Digest == former.Digest, want > 1)
		}
		check.Equal(t, fmt.Sprintf("shapes, ended %s ago", ago), len(distinct), want)
	}
}

// TestLabelsCostTheirLength: clients with different labels share the rest, and an entry has the
// same size as without labels, 104 bytes.
func TestLabelsCostTheirLength(t *testing.T) {
	const size = 104
	if got := unsafe.Sizeof(entry{}); got > size {
		t.Errorf("an entry has %d bytes, want %d", got, size)
	}
	s, distinct := shapes{}, map[*shape]bool{}
	for n := range 2 * mostShapes {
		id := fmt.Sprint(n)
		c := Client{ID: id, Grants: []Grant{ClientCredentials}, Labels: labels.Set("contract=" + id + "\nteam=payments")}
		e := s.entry(c)
		distinct[e.shape] = true
		if got, want := len(e.text), len(id)+len(c.Labels); got != want {
			t.Fatalf("a text of %d bytes, want %d", got, want)
		}
	}
	check.Equal(t, "shapes", len(distinct), 1)
}

// TestListsCostTheirLength: clients with different scopes and audiences share the rest, and cost
// the length of their lists.
func TestListsCostTheirLength(t *testing.T) {
	const size = 24
	if got := unsafe.Sizeof(shape{}); got > size {
		t.Errorf("a shape has %d bytes, want %d", got, size)
	}
	s, common := shapes{}, map[*Client]bool{}
	entryOf := func(n int) *entry {
		id := fmt.Sprint(n)
		c := Client{
			ID: id, Grants: []Grant{ClientCredentials}, Scopes: []string{"read", id, "", strings.Repeat("scope ", n%50)},
			Audience: []string{"https://" + id + ".example.com", "line\nline"},
		}
		e := s.entry(c)
		if got := e.client(); !slices.Equal(got.Scopes, c.Scopes) || !slices.Equal(got.Audience, c.Audience) {
			t.Fatalf("scopes %q and audience %q, want %q and %q", got.Scopes, got.Audience, c.Scopes, c.Audience)
		}
		return e
	}
	const clients = 2 * mostShapes
	for n := range clients {
		common[entryOf(n).shape.common] = true
	}
	check.Equal(t, "common parts", len(common), 1)
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
