package clientcfg_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

func (s *clientStore) is(t *testing.T, want clientcfg.Client) {
	t.Helper()
	got, err := s.Client(t.Context(), want.ID)
	check.OK(t, err)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// TestRegistrations: each change is made together with its event, under its conditions, or not at
// all.
func TestRegistrations(t *testing.T) {
	s, ctx := storeOf(t), t.Context()
	f := followerOf(t, s.file)
	c, event := filled(t), func(action string) clientcfg.Event {
		return clientcfg.Event{Action: action, Target: clientcfg.ClientTarget("web"), Actor: clientcfg.Actor{ClientID: "ops"}, At: time.Unix(1e9, 0).UTC()}
	}
	check.ErrorIs(t, s.UpdateClient(ctx, c, event("update")), clientcfg.ErrNotFound, "update of nothing")
	check.ErrorIs(t, s.DeleteClient(ctx, c.ID, event("delete")), clientcfg.ErrNotFound, "deletion of nothing")
	check.OK(t, s.CreateClient(ctx, c, event("create")))
	c.Version = 1
	s.is(t, c)
	check.ErrorIs(t, s.CreateClient(ctx, c, event("create")), clientcfg.ErrExists, "another of the name")

	next := c
	next.Name = `Q & <A> "\ü`
	check.OK(t, s.UpdateClient(ctx, next, event("update")))
	next.Version = 2
	s.is(t, next)
	check.ErrorIs(t, s.UpdateClient(ctx, c, event("update")), clientcfg.ErrConflict, "update of an older version")
	check.ErrorIs(t, s.DeleteUnchanged(ctx, c, event("delete")), clientcfg.ErrConflict, "deletion of an older version")
	check.OK(t, s.DeleteUnchanged(ctx, next, event("delete")))
	again := c
	again.Stamp = secret.NewStamp()
	check.OK(t, s.CreateClient(ctx, again, event("create")))
	check.ErrorIs(t, s.UpdateClient(ctx, c, event("update")), clientcfg.ErrConflict, "update of a namesake")
	check.OK(t, s.DeleteClient(ctx, "web", event("delete")))

	events, err := clientcfg.NewAuditTrail(f).Events(ctx, clientcfg.EventQuery{Target: "clients/web"})
	check.OK(t, err)
	var actions []string
	for i := range events {
		actions = append(actions, events[i].Action)
		check.Equal(t, "actor", events[i].Actor.ClientID, "ops")
		check.Equal(t, "time", events[i].At, time.Unix(1e9, 0).UTC())
	}
	check.Equal(t, "events", strings.Join(actions, " "), "delete create delete update create")
}

// TestClientsCreatedAtOnce: of several clients with one ID, one is created. With different IDs, all
// are.
func TestClientsCreatedAtOnce(t *testing.T) {
	s := storeOf(t)
	const instances, clients = 3, 4
	created := make([]int, clients)
	var mu sync.Mutex
	var calls sync.WaitGroup
	for range instances {
		f := followerOf(t, s.file)
		other := clientcfg.NewRegistrations(f)
		for i := range clients {
			calls.Go(func() {
				switch err := other.CreateClient(t.Context(), named(string(rune('a'+i))), clientcfg.Event{}); {
				case err == nil:
					mu.Lock()
					defer mu.Unlock()
					created[i]++
				case !errors.Is(err, clientcfg.ErrExists):
					t.Error(err)
				}
			})
		}
	}
	calls.Wait()
	check.Equal(t, "created", created, []int{1, 1, 1, 1})
}

func TestSecretUses(t *testing.T) {
	s, ctx := storeOf(t), t.Context()
	c, noon := filled(t), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	check.OK(t, s.CreateClient(ctx, c, clientcfg.Event{}))
	c.Version = 1
	use := func(d secret.Digest, at time.Time) {
		t.Helper()
		check.OK(t, s.RecordUses(ctx, []clientcfg.SecretUse{{ClientID: c.ID, Digest: d, At: at}}))
	}
	use(c.SecretDigest, noon)
	use(c.Former.Digest, noon.Add(time.Hour))
	use(c.SecretDigest, noon.Add(-time.Minute)) // from an instance with a slow clock
	c.SecretUsed, c.Former.Used = noon, noon.Add(time.Hour)
	s.is(t, c)

	c.Former = clientcfg.FormerSecret{Digest: c.SecretDigest, Until: c.Former.Until}
	c.SecretDigest, c.SecretUsed = secret.DigestOf("new"), time.Time{}
	check.OK(t, s.UpdateClient(ctx, c, clientcfg.Event{}))
	c.Version, c.Former.Used = 2, noon
	s.is(t, c)
	check.Equal(t, "uses that are left", s.records(t, "secret_uses"), 1)
	check.OK(t, s.DeleteClient(ctx, c.ID, clientcfg.Event{}))
	check.Equal(t, "uses of nothing", s.records(t, "secret_uses"), 0)
}

func (s *clientStore) records(t *testing.T, table string) (n int) {
	t.Helper()
	check.OK(t, s.file.List(t.Context(), store.Table{Name: table}, store.Query{}, func(store.Record) error { n++; return nil }))
	return n
}

// TestUnreadableClients: an unreadable client is read as such, exists, and can be deleted. The
// others are unaffected.
func TestUnreadableClients(t *testing.T) {
	for name, value := range map[string]string{
		"no list": `{"grants":"all"}`, "a newer version": `{"grants":["client_credentials"],"signs":true}`,
		"another type": `{"grants":["client_credentials"],"version":"1"}`, "not valid": `{"grants":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, ctx := storeOf(t, named("a")), t.Context()
			f := followerOf(t, s.file)
			_, err := f.Append(ctx, func(int64) (store.Entry, []store.Write, error) {
				w := store.Write{Table: clientcfg.ClientsTable, Record: store.Record{Key: "bad", Value: []byte(value)}}
				return store.Entry{Value: []byte(`{}`)}, []store.Write{w}, nil
			})
			check.OK(t, err)
			d, err := clientcfg.ReadDirectory(ctx, s)
			check.OK(t, err)
			check.Equal(t, "served", ids(d), []string{"a"})
			check.ErrorIs(t, d.Unreadable()["bad"], clientcfg.ErrUnreadableClient, "why")
			_, err = s.Client(ctx, "bad")
			check.ErrorIs(t, err, clientcfg.ErrUnreadableClient, "read")
			check.ErrorIs(t, s.CreateClient(ctx, named("bad"), clientcfg.Event{}), clientcfg.ErrExists, "create over it")
			check.OK(t, s.DeleteClient(ctx, "bad", clientcfg.Event{}))
			check.OK(t, s.CreateClient(ctx, named("bad"), clientcfg.Event{}))
		})
	}
}

func TestRestampClients(t *testing.T) {
	a, b := named("a"), named("b")
	a.Stamp, b.Stamp = secret.NewStamp(), secret.NewStamp()
	s, ctx := storeOf(t, a, b), t.Context()
	before, err := s.Client(ctx, "a")
	check.OK(t, err)
	check.OK(t, s.RestampClients(ctx))
	after, err := s.Client(ctx, "a")
	check.OK(t, err)
	check.Equal(t, "accepts what was issued", after.Stamp.Accepts(before.Stamp), false)
	check.Equal(t, "version", after.Version, int64(2))
}

// TestStoredClientIsReadable shows the document as operators see it.
func TestStoredClientIsReadable(t *testing.T) {
	s := storeOf(t)
	check.OK(t, s.CreateClient(t.Context(), filled(t), clientcfg.Event{}))
	check.OK(t, s.file.Get(t.Context(), clientcfg.ClientsTable, func(r store.Record) error {
		var doc map[string]any
		check.OK(t, json.Unmarshal(r.Value, &doc))
		check.Equal(t, "labels", doc["labels"], any([]any{"env=live", "team=payments"}))
		check.Equal(t, "createdAt", doc["createdAt"], any("2001-09-09T01:46:40Z"))
		return nil
	}, "web"))
}
