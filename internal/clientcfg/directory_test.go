package clientcfg_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// filled returns a client with every field set, including fields added in the future.
func filled(t *testing.T) clientcfg.Client {
	t.Helper()
	c := webClient(func(c *clientcfg.Client) {
		c.Name, c.Audience, c.WithoutPKCE, c.ResourceServer, c.FirstParty, c.Version = "Shop", []string{"api"}, true, true, true, 7
		c.RedirectURIs = []string{"https://a.example/cb", "https://b.example/cb"}
		c.CreatedAt = time.Unix(1e9, 0).UTC()
		c.Stamp, c.Labels = secret.Stamp{ID: "id", Count: 3}, "env=live\nteam=payments"
		c.Former = clientcfg.FormerSecret{Digest: secret.DigestOf("old"), Until: time.Unix(3e9, 0).UTC()}
	})
	fields := reflect.ValueOf(&c).Elem()
	for i := range fields.NumField() {
		switch name := fields.Type().Field(i).Name; {
		case name == "Public" || name == "SecretUsed": // excludes other fields, or is not in a directory
		case fields.Field(i).IsZero():
			t.Fatalf("the field %s is not set: set it here, and see that entry in directory.go has it, if it differs from client to client", name)
		}
	}
	return c
}

// TestDirectoryKeepsEveryField: clients are read back unchanged, whatever they share with each
// other.
func TestDirectoryKeepsEveryField(t *testing.T) {
	a, b := filled(t), filled(t)
	b.ID, b.Former.Until = "other", time.Unix(4e9, 0).UTC()
	public := webClient(func(c *clientcfg.Client) { c.ID, c.Public, c.SecretDigest = "p", true, secret.Digest{} })
	c := named("machine")
	c.Grants, c.RedirectURIs, c.Scopes = []clientcfg.Grant{clientcfg.ClientCredentials}, nil, nil
	want := []clientcfg.Client{a, b, public, c}
	d, err := clientcfg.ReadDirectory(t.Context(), storeOf(t, want...))
	check.OK(t, err)
	for _, w := range want {
		w.Version = 1
		got, ok := d.Client(w.ID)
		if !ok {
			t.Fatalf("client %s is not there", w.ID)
		}
		if diff := cmp.Diff(w, *got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("client %s (-want +got):\n%s", w.ID, diff)
		}
	}
	if !d.May(clientcfg.ClientCredentials) || d.May(clientcfg.Password) {
		t.Error("the counts of grants are wrong")
	}
	if got, want := len(slices.Collect(d.After("other"))), 2; got != want { // p and web
		t.Errorf("%d clients after other, want %d", got, want)
	}
}

// TestDirectoryFollowsChanges makes random changes, some with unreadable clients. A snapshot that
// follows them equals one that reads everything, and earlier snapshots stay unchanged.
func TestDirectoryFollowsChanges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	store := storeOf(t)
	source := store.source(nil)
	type state struct {
		d          *clientcfg.Directory
		clients    map[string]clientcfg.Client
		unreadable []string
	}
	var states []state
	now := map[string]clientcfg.Client{}
	for range 30 {
		for range 1 + rng.IntN(10) {
			c := named(fmt.Sprint(rng.IntN(50)))
			switch rng.IntN(4) {
			case 0:
				c.Grants = nil // cannot be read
			case 1:
				c.Grants = append(c.Grants, clientcfg.Password)
			case 2:
				clientcfg.MakeOperator(&c)
			}
			if now[c.ID] = c; rng.IntN(3) == 0 {
				delete(now, c.ID)
			}
		}
		store.put(slices.Collect(maps.Values(now))...)
		store.refresh()
		if rng.IntN(2) == 0 {
			ids(source.Directory()) // sorts, which the next directory can build on
		}
		s := state{d: source.Directory(), clients: map[string]clientcfg.Client{}}
		for id, c := range store.now {
			if c.Grants == nil {
				s.unreadable = append(s.unreadable, id)
			} else {
				s.clients[id] = c
			}
		}
		slices.Sort(s.unreadable)
		states = append(states, s)
	}
	for i, s := range states {
		got, passwords := map[string]clientcfg.Client{}, false
		var operators []string
		for c := range s.d.All() {
			got[c.ID] = *c
			passwords = passwords || c.May(clientcfg.Password)
			if c.IsOperator() {
				operators = append(operators, c.ID)
			}
		}
		var listed []string
		for c := range s.d.Operators() {
			listed = append(listed, c.ID)
		}
		sorted := slices.Sorted(maps.Keys(s.clients))
		check.Equal(t, "order", ids(s.d), sorted)
		for c := range s.d.After(sorted[len(sorted)/2]) {
			check.Equal(t, "next", c.ID, sorted[len(sorted)/2+1])
			break
		}
		slices.Sort(operators)
		slices.Sort(listed)
		if !slices.Equal(listed, operators) {
			t.Errorf("state %d: operators %q, want %q", i, listed, operators)
		}
		if diff := cmp.Diff(s.clients, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("state %d (-want +got):\n%s", i, diff)
		}
		if bad := slices.Sorted(maps.Keys(s.d.Unreadable())); !slices.Equal(bad, s.unreadable) {
			t.Errorf("state %d: unreadable %q, want %q", i, bad, s.unreadable)
		}
		if s.d.May(clientcfg.Password) != passwords || s.d.Len() != len(s.clients) {
			t.Errorf("state %d: the counts are wrong", i)
		}
	}
	check.Equal(t, "reads of all clients", store.reads.lists, 1)
}

// BenchmarkClient is on the path of every token request.
func BenchmarkClient(b *testing.B) {
	d, err := clientcfg.ReadDirectory(b.Context(), storeOf(b, named("a")))
	check.OK(b, err)
	b.ReportAllocs()
	for b.Loop() {
		d.Client("a")
	}
}

// TestRest: when nothing changes, nothing in memory is copied, however many clients there are.
func TestRest(t *testing.T) {
	var many []clientcfg.Client
	for i := range 500 {
		many = append(many, named(fmt.Sprint("client-", i)))
	}
	store := storeOf(t, many...)
	source := store.source(nil)
	before := source.Directory()
	const times = 100
	var from, to runtime.MemStats
	runtime.ReadMemStats(&from)
	for range times {
		store.refresh()
	}
	runtime.ReadMemStats(&to)
	if got := (to.TotalAlloc - from.TotalAlloc) / times; got > 4096 {
		t.Errorf("%d bytes are allocated each time", got)
	}
	if source.Directory() != before {
		t.Error("there is another directory")
	}
}
