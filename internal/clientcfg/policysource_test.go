package clientcfg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
	"oauth-server/internal/store/bolt"
)

// policyStore is a data file that the test changes like other instances.
type policyStore struct {
	*bolt.Store
	tb    testing.TB
	loads int       // reads of all policies
	race  int       // number of concurrent writes that come before the next one
	now   time.Time // by the clock of the store; zero means the time of this machine
}

func (f *policyStore) Now(ctx context.Context) (time.Time, error) {
	if f.now.IsZero() {
		return f.Store.Now(ctx)
	}
	return f.now, nil
}

func newPolicyStore(tb testing.TB) *policyStore {
	tb.Helper()
	return &policyStore{Store: openFile(tb), tb: tb}
}

// List clears each value after its use, because a backend may reuse the memory.
func (f *policyStore) List(ctx context.Context, t store.Table, q store.Query, each func(store.Record) error) error {
	if q.Prefix == "" {
		f.loads++
	}
	return f.Store.List(ctx, t, q, func(r store.Record) error {
		defer clear(r.Value)
		return each(r)
	})
}

func (f *policyStore) Append(ctx context.Context, e store.Entry, writes ...store.Write) (store.Mark, error) {
	if f.race > 0 {
		f.race--
		f.put(stored("policies/rival", "{}"))
	}
	return f.Store.Append(ctx, e, writes...)
}

// put appends an entry from another instance.
func (f *policyStore) put(changes ...clientcfg.Change) {
	f.tb.Helper()
	e, writes, err := entry(0, changes...).Stored()
	check.OK(f.tb, err)
	f.append(e, writes...)
}

func (f *policyStore) append(e store.Entry, writes ...store.Write) {
	f.tb.Helper()
	_, newest, err := f.Trail(context.Background(), store.Mark{}, 1)
	if err == nil || errors.Is(err, store.ErrMarkLost) {
		e.Number = newest.Number + 1
		_, err = f.Store.Append(context.Background(), e, writes...)
	}
	check.OK(f.tb, err)
}

// trail returns the events of the trail, oldest first.
func (f *policyStore) trail() (events []clientcfg.Event) {
	f.tb.Helper()
	events, err := clientcfg.NewAuditTrail(followerOf(f.tb, f)).Events(context.Background(), clientcfg.EventQuery{})
	check.OK(f.tb, err)
	slices.Reverse(events)
	return events
}

// following is a source with its follower.
type following struct {
	*clientcfg.PolicySource
	*store.Follower
}

func follow(tb testing.TB, f *policyStore, o clientcfg.PolicyOptions) *following {
	tb.Helper()
	follower := followerOf(tb, f)
	s, err := clientcfg.NewPolicySource(context.Background(), follower, o)
	check.OK(tb, err)
	return &following{s, follower}
}

func newPolicySource(tb testing.TB, f *policyStore) *following {
	tb.Helper()
	return follow(tb, f, clientcfg.PolicyOptions{Base: fileSettings()})
}

func userLimit(s *following, id string) int64 {
	return s.Snapshot().For(id).User.All()[0].Requests
}

// limitShop returns an edit that gives shop a policy.
func limitShop(requests int64) clientcfg.Edit {
	return func(*clientcfg.PolicySnapshot) (clientcfg.Event, error) {
		c, err := clientcfg.SetTarget(clientcfg.PolicyTarget("shop"), &clientcfg.Value{Policy: ratelimit.Policy{User: limits(requests)}})
		return clientcfg.Event{Action: "update", Changes: []clientcfg.Change{c}, Reason: strconv.FormatInt(requests, 10)}, err
	}
}

// broken returns a change that another release may consider valid.
func broken() clientcfg.Change { return stored("policies/shop", `{"user":[{"requests":0}]}`) }

// shopHas is a change by another instance.
func shopHas(requests int) clientcfg.Change {
	return stored("policies/shop", fmt.Sprintf(`{"user":[{"requests":%d}]}`, requests))
}

func TestPolicySourceStartsOnlyWithAStore(t *testing.T) {
	f := newPolicyStore(t)
	s := follow(t, f, clientcfg.PolicyOptions{})
	check.Equal(t, "limit without a file", userLimit(s, "anybody"), ratelimit.DefaultLimit().Requests)
	check.OK(t, f.Close())
	_, err := clientcfg.NewPolicySource(t.Context(), s.Follower, clientcfg.PolicyOptions{})
	check.Equal(t, "failed without a store", err != nil, true)
}

// TestPolicySourceReadsWhatIsNew: it reads all policies once, and then only entries. Entries of
// other kinds do not change the version. A starting instance reads the same policies.
func TestPolicySourceReadsWhatIsNew(t *testing.T) {
	f := newPolicyStore(t)
	s := newPolicySource(t, f)
	for i := range 10 {
		f.put(shopHas(i + 1))
	}
	f.put(stored("policies/web", `{}`))
	f.put(stored("policies/web", "null"))
	f.append(store.Entry{Value: []byte(`{"action":"create","target":"clients/a","before":null,"after":null}`)})
	check.OK(t, s.Refresh(t.Context()))
	check.Equal(t, "reads of all policies", f.loads, 1)
	for _, s := range []*following{s, newPolicySource(t, f)} {
		check.Equal(t, "limit", userLimit(s, "shop"), 10)
		check.Equal(t, "version", s.Status().Version, 12)
		check.Equal(t, "policies", s.Snapshot().Set().Clients.Len(), 1)
	}
}

// TestPolicySourceReadsAllOfAnotherTrail: after a restored backup, or if entries are no longer in
// the trail.
func TestPolicySourceReadsAllOfAnotherTrail(t *testing.T) {
	for name, change := range map[string]func(f *policyStore){
		"an older one": func(f *policyStore) { f.Store = newPolicyStore(t).Store; f.put(shopHas(8)) },
		"an older one that went on": func(f *policyStore) {
			f.Store = newPolicyStore(t).Store
			for range 5 {
				f.put(shopHas(8))
			}
		},
		"trimmed": func(f *policyStore) {
			f.put(shopHas(7))
			f.put(shopHas(8))
			check.OK(t, f.Trim(t.Context(), 4))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPolicyStore(t)
			for range 3 {
				f.put(shopHas(3))
			}
			s := newPolicySource(t, f)
			change(f)
			check.OK(t, s.Refresh(t.Context()))
			check.Equal(t, "limit", userLimit(s, "shop"), 8)
			check.Equal(t, "version", s.Status().Version, newPolicySource(t, f).Status().Version)
		})
	}
}

// TestPolicySourceLeavesOutWhatCannotBeUsed: for an unusable value, a running instance keeps the
// previous one, and a starting instance takes it from the trail. Everything else is in force, and
// changes work. An ordinary command repairs the value.
func TestPolicySourceLeavesOutWhatCannotBeUsed(t *testing.T) {
	for _, tt := range []struct {
		name string
		bad  clientcfg.Change
	}{
		{"a target of a newer version", stored("users/ada", "{}")},
		{"a name twice", stored("policies/shop", `{"note":"a","note":"b"}`)},
		{"a field of a newer version", stored("policies/shop", `{"burst":5}`)},
		{"a wrong type", stored("policies/shop", `{"user":7}`)},
		{"a limit that cannot be", broken()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			f := newPolicyStore(t)
			f.put(shopHas(5))
			runs := follow(t, f, clientcfg.PolicyOptions{Base: fileSettings(), Log: slog.New(slog.NewTextHandler(&log, nil))})
			bad := tt.bad
			if bad.Target == "policies/shop" {
				bad.Before = shopHas(5).After
			}
			f.put(bad, stored("policies/web", `{"user":[{"requests":6}]}`))
			f.put(stored("policies/app", `{"user":[{"requests":4}]}`))
			check.OK(t, runs.Refresh(t.Context()))
			starts := newPolicySource(t, f)
			for _, s := range []*following{runs, starts} {
				st := s.Status()
				check.Equal(t, "limits", []int64{userLimit(s, "shop"), userLimit(s, "web"), userLimit(s, "app")}, []int64{5, 6, 4})
				check.Equal(t, "status", []int64{st.Version, int64(st.LeftOut)}, []int64{3, 1})
				requireError(t, st.Err, bad.Target+": ")
				check.Equal(t, "it is known", s.Snapshot().IsLeftOut(bad.Target), true)
			}
			_, err := starts.Change(t.Context(), func(*clientcfg.PolicySnapshot) (clientcfg.Event, error) {
				return *entry(0, stored("policies/app", `{"user":[{"requests":3}]}`)), nil
			})
			check.OK(t, err)
			same := stored(bad.Target, "null")
			if bad.Target == "policies/shop" {
				own, _ := starts.Snapshot().Policy("shop")
				same, err = clientcfg.SetTarget(clientcfg.PolicyTarget("shop"), &own)
			}
			check.OK(t, err)
			check.Equal(t, "what is in force is another value", starts.Snapshot().Alters(&same), true)
			f.put(same)
			for _, s := range []*following{runs, starts, newPolicySource(t, f)} {
				check.OK(t, s.Refresh(t.Context()))
				check.Equal(t, "limits", []int64{userLimit(s, "shop"), userLimit(s, "app")}, []int64{5, 3})
				check.Equal(t, "left out", s.Status().LeftOut, 0)
				check.OK(t, s.Status().Err)
			}
			check.Equal(t, "lines of the log", strings.Count(log.String(), "\n"), 2)
		})
	}
}

// TestPolicySourceStartsWithWhatCanBeUsed: an unusable target gets the value of its last usable
// change, or the one of the configuration file.
func TestPolicySourceStartsWithWhatCanBeUsed(t *testing.T) {
	for _, tt := range []struct {
		name     string
		settings string
		spoil    func(f *policyStore)
		shop     int64
		mode     ratelimit.Mode
	}{
		{"invalid", `{"canary_percent":101}`, func(*policyStore) {}, 5, ratelimit.DryRun},
		{"of a newer version", `{"mode":"off","until":"tomorrow"}`, func(*policyStore) {}, 5, ratelimit.DryRun},
		{"trimmed", `{"mode":"off","until":"tomorrow"}`, func(f *policyStore) {
			f.append(store.Entry{Value: []byte("{}")})
			check.OK(t, f.Trim(t.Context(), 1))
		}, 7, ratelimit.Enforce},
		{"edited by hand", `{"mode":"off"}`, func(f *policyStore) {
			bad := store.Write{Table: clientcfg.PoliciesTable, Record: store.Record{Key: "settings", Value: []byte(`{"mode":7}`)}}
			f.append(store.Entry{Value: []byte(`{"unknown":1}`)}, bad)
		}, 5, ratelimit.Off},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newPolicyStore(t)
			settings, shop := stored("settings", tt.settings), broken()
			settings.Before, shop.Before = []byte(`{"mode":"dry_run"}`), shopHas(5).After
			f.put(settings, shop, stored("policies/web", `{"user":[{"requests":6}]}`), stored("users/ada", "{}"))
			tt.spoil(f)
			s := newPolicySource(t, f)
			check.Equal(t, "limits", []int64{userLimit(s, "shop"), userLimit(s, "web")}, []int64{tt.shop, 6})
			check.Equal(t, "mode", s.Snapshot().For("web").Mode, tt.mode)
			check.Equal(t, "left out", s.Status().LeftOut, 3)
			_, err := s.Change(t.Context(), limitShop(9))
			check.OK(t, err)
			f.put(stored("settings", `{"mode":"off"}`), stored("users/ada", "null"))
			check.OK(t, s.Refresh(t.Context()))
			check.Equal(t, "limit of shop", userLimit(s, "shop"), 9)
			check.OK(t, s.Status().Err)
		})
	}
}

// TestPolicySourceTakesAnUnreadableEntryFromTheTable: a newer version wrote the entry, and its
// values are readable.
func TestPolicySourceTakesAnUnreadableEntryFromTheTable(t *testing.T) {
	f := newPolicyStore(t)
	f.put(shopHas(5), stored("policies/web", `{"user":[{"requests":6}]}`))
	s := newPolicySource(t, f)
	_, writes, err := entry(0, shopHas(8), stored("policies/web", "null")).Stored()
	check.OK(t, err)
	f.append(store.Entry{Value: []byte(`{"unknown":1}`)}, writes...)
	check.OK(t, s.Refresh(t.Context()))
	check.Equal(t, "limits", []int64{userLimit(s, "shop"), userLimit(s, "web")}, []int64{8, 100}) // 100 is the value in the file
	check.Equal(t, "version", s.Status().Version, 2)
	check.OK(t, s.Status().Err)
	check.Equal(t, "reads of all policies", f.loads, 1)
}

// TestManyThatCannotBeUsed: the error stays short, and the trail is read once.
func TestManyThatCannotBeUsed(t *testing.T) {
	f := newPolicyStore(t)
	var changes []clientcfg.Change
	for i := range 900 {
		c := stored(fmt.Sprintf("policies/c%d", i), `{"burst":5}`)
		c.Before = []byte(`{"user":[{"requests":6}]}`)
		changes = append(changes, c)
	}
	f.put(changes...)
	s := newPolicySource(t, f)
	check.Equal(t, "limit", userLimit(s, "c7"), 6)
	check.Equal(t, "left out", s.Status().LeftOut, 900)
	if text := s.Status().Err.Error(); len(text) > 2000 || !strings.Contains(text, "895 more targets") {
		t.Errorf("the error has %d bytes: %s", len(text), text)
	}
}

// TestResetsTravelWithTheEntries: resets reach instances that have read the previous entries, for
// an hour.
func TestResetsTravelWithTheEntries(t *testing.T) {
	f := newPolicyStore(t)
	now := entry(0).At
	var seen []string
	f.put(stored("clients/before/counters", "{}"))
	s := follow(t, f, clientcfg.PolicyOptions{
		Clock: func() time.Time { return now },
		Reset: func(r clientcfg.Reset) {
			if r.Username != nil {
				r.ClientID += " " + *r.Username
			}
			seen = append(seen, r.ClientID)
		},
	})
	f.put(stored("clients/a/counters", "{}"), shopHas(5), stored("clients/b/counters", `{"username":"u"}`))
	f.put(shopHas(6))
	f.put(stored("clients/c/counters", "{}"))
	check.OK(t, s.Refresh(t.Context()))
	now = now.Add(time.Hour + time.Second)
	f.put(stored("clients/late/counters", "{}"))
	check.OK(t, s.Refresh(t.Context()))
	if diff := cmp.Diff([]string{"a", "b u", "c"}, seen); diff != "" || userLimit(s, "shop") != 6 {
		t.Errorf("resets (-want +got):\n%s", diff)
	}
}
