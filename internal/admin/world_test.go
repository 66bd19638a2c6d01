package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/accounts"
	"oauth-server/internal/admin"
	"oauth-server/internal/admin/resets"
	"oauth-server/internal/app/repositories"
	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/keys"
	"oauth-server/internal/limiter/activity"
	"oauth-server/internal/limiter/bans"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/secret"
	datastore "oauth-server/internal/store"
)

func TestMain(m *testing.M) {
	if os.Getenv("MONGODB_TEST_URI") == "" {
		os.Exit(m.Run()) // testcontainers keeps its own connections until the end
	}
	goleak.VerifyTestMain(m)
}

var noon = testworld.Noon

// tokens knows the claims of each token.
type tokens map[string]keys.Claims

func (ts tokens) Bearer(_ context.Context, token string) (keys.Claims, error) {
	switch c, ok := ts[token]; {
	case ok:
		return c, nil
	case token == "store-down":
		return keys.Claims{}, errors.New("no database")
	}
	return keys.Claims{}, grants.ErrBearer
}

// users are the users of the store, which fails for one of them.
type users struct{ store *shared }

func (u users) User(ctx context.Context, name string) (accounts.User, error) {
	if name == "nobody can tell" {
		return accounts.User{}, errors.New("no database")
	}
	return u.store.User(ctx, name)
}

// shared is the store of several processes, with its own clock.
type shared struct {
	repositories.Store
	clock      *testworld.Clock
	heartbeats heartbeats
	noReports  error // why the reports cannot be read
}

// instance is one process with its admin API. Several instances share a store.
type instance struct {
	t        *testing.T
	name     string
	store    *shared
	clock    *testworld.Clock
	follower *datastore.Follower
	clients  *clientcfg.Source
	policies *clientcfg.PolicySource
	counters *counting.Counters
	recorder *activity.Recorder
	resets   *resets.Resets
	bans     *bans.Bans
	api      *admin.Server
	tokens   tokens
}

// odd is a client_id that must be escaped in a path.
const odd = "a/b%2F:c"

// The tokens of the world.
const (
	writer = "token-of-ops"
	reader = "token-of-viewer"
)

func confidential(id string, change func(*clientcfg.Client)) clientcfg.Client {
	c := clientcfg.Client{
		ID: id, SecretDigest: secret.DigestOf("s"), Grants: []clientcfg.Grant{clientcfg.ClientCredentials},
		CreatedAt: noon,
	}
	change(&c)
	return c
}

func openStore(t *testing.T) *shared {
	t.Helper()
	s := testworld.OpenStore(t, filepath.Join(t.TempDir(), "test.db"))
	return sharedOn(t, repositories.Store{Backend: s.Store, All: s.All})
}

// sharedOn fills an empty store.
func sharedOn(t *testing.T, store repositories.Store) *shared {
	t.Helper()
	made := testworld.OpenStore(t, filepath.Join(t.TempDir(), "made.db")) // the trail of the test's own store starts with the test's first change
	for _, c := range []clientcfg.Client{
		confidential("ops", clientcfg.MakeOperator),
		confidential("viewer", func(c *clientcfg.Client) {
			clientcfg.MakeOperator(c)
			c.Scopes = []string{clientcfg.ScopeLimitsRead, clientcfg.ScopeRegistrationsRead}
		}),
		confidential("shop", func(c *clientcfg.Client) { c.Name = "Shop" }),
		confidential("app", func(*clientcfg.Client) {}),
		confidential(odd, func(*clientcfg.Client) {}),
	} {
		check.OK(t, made.CreateClient(t.Context(), c, clientcfg.Event{}))
	}
	for name, access := range map[string]clientcfg.Access{
		"ada": clientcfg.WriteAccess, "rob": clientcfg.ReadAccess, "eve": clientcfg.NoAccess, "ann": "a level of a newer release",
	} {
		check.OK(t, made.CreateUser(t.Context(), accounts.User{Name: name, Operator: access, CreatedAt: noon}, clientcfg.Event{}))
	}
	for _, table := range []datastore.Table{clientcfg.ClientsTable, accounts.UsersTable} {
		var records []datastore.Record
		check.OK(t, made.List(t.Context(), table, datastore.Query{}, func(r datastore.Record) error {
			r.Value = bytes.Clone(r.Value)
			records = append(records, r)
			return nil
		}))
		check.OK(t, store.PutAll(t.Context(), table, records))
	}
	c := &testworld.Clock{}
	return &shared{store, c, heartbeats{}, nil}
}

// Now replaces the time of this machine.
func (s *shared) Now(context.Context) (time.Time, error) { return s.clock.Now(), nil }

// file returns the configuration file's settings in these tests.
func file() ratelimit.Settings {
	s := ratelimit.DefaultSettings()
	s.Clients = map[string]ratelimit.Policy{"app": {User: perMinute(7)}}
	return s
}

func perMinute(requests int64) []ratelimit.Limit {
	return []ratelimit.Limit{ratelimit.NewLimit("per-minute", requests, time.Minute)}
}

func newInstance(t *testing.T, name string, store *shared, base ratelimit.Settings, change ...func(*admin.Options)) *instance {
	t.Helper()
	w := &instance{t: t, name: name, store: store, clock: &testworld.Clock{}, counters: counting.NewCounters(0), recorder: activity.New(0, noon)}
	w.resets = resets.New(w.counters, nil, slog.New(slog.DiscardHandler))
	var err error
	w.follower, err = datastore.NewFollower(t.Context(), store)
	check.OK(t, err)
	w.clients, err = clientcfg.NewSource(t.Context(), w.follower, nil)
	check.OK(t, err)
	w.policies, err = clientcfg.NewPolicySource(t.Context(), w.follower, clientcfg.PolicyOptions{
		Base: base, Clock: w.clock.Now, Reset: w.resets.CarryOut,
	})
	check.OK(t, err)
	w.bans, err = bans.New(t.Context(), bans.Options{Store: bans.NewRepository(store), Counters: w.counters, Clock: w.clock.Now})
	check.OK(t, err)
	w.tokens = tokens{
		writer: {ClientID: "ops", Subject: "ops", Audience: []string{clientcfg.AdminAudience}, Scopes: []string{"ratelimit:read", "ratelimit:write", "registrations:write"}},
		reader: {ClientID: "viewer", Subject: "viewer", Audience: []string{clientcfg.AdminAudience}, Scopes: []string{"ratelimit:read", "registrations:read"}},
		"of-a-user": {
			ClientID: "ops", Subject: "ada", Family: "f", Audience: []string{clientcfg.AdminAudience}, Scopes: []string{"ratelimit:write"},
		},
		"of-a-reader": {
			ClientID: "ops", Subject: "rob", Family: "f", Audience: []string{clientcfg.AdminAudience}, Scopes: []string{"ratelimit:write"},
		},
		"of-a-stranger": {
			ClientID: "ops", Subject: "eve", Family: "f", Audience: []string{clientcfg.AdminAudience}, Scopes: []string{"ratelimit:read", "ratelimit:write"},
		},
		"of-the-future": {
			ClientID: "ops", Subject: "ann", Family: "f", Audience: []string{clientcfg.AdminAudience}, Scopes: []string{"ratelimit:write"},
		},
		"of-one-deleted": {
			ClientID: "ops", Subject: "del", Family: "f", Audience: []string{clientcfg.AdminAudience}, Scopes: []string{"ratelimit:write"},
		},
		"plain":        {ClientID: "shop", Subject: "shop", Audience: []string{"https://issuer.example"}, Scopes: []string{"ratelimit:write"}},
		"no-scope":     {ClientID: "ops", Subject: "ops", Audience: []string{clientcfg.AdminAudience}},
		"lost-scope":   {ClientID: "viewer", Subject: "viewer", Audience: []string{clientcfg.AdminAudience}, Scopes: []string{"ratelimit:write"}},
		"lost-client":  {ClientID: "gone", Subject: "gone", Audience: []string{clientcfg.AdminAudience}, Scopes: []string{"ratelimit:write"}},
		"untold":       {ClientID: "ops", Subject: "nobody can tell", Family: "f", Audience: []string{clientcfg.AdminAudience}, Scopes: []string{"ratelimit:write"}},
		"two-audience": {ClientID: "ops", Subject: "ops", Audience: []string{"x", clientcfg.AdminAudience}, Scopes: []string{"ratelimit:read"}},
	}
	o := admin.Options{
		UserHash: func(username string) string { return "hash-of-" + username },
		Issuer:   "https://issuer.example", Instance: func() string { return name }, Version: "test", Tokens: w.tokens, Clients: w.clients,
		Policies: w.policies, Resets: w.resets, Reports: store, Counters: w.counters, Activity: w.recorder, Now: w.clock.Now,
		AuditKept: 400 * 24 * time.Hour, Stored: store, Users: users{store}, Registry: store, Events: store, Bans: w.bans,
	}
	for _, c := range change {
		c(&o)
	}
	w.api, err = admin.New(o)
	check.OK(t, err)
	return w
}

func newWorld(t *testing.T) *instance {
	t.Helper()
	return newInstance(t, "i-1", openStore(t), file())
}

// ask sends token requests through the limiter, without a particular grant and from one address,
// and returns how many passed.
func (w *instance) ask(id, user string, n int) (passed int) {
	w.t.Helper()
	return w.askAs(id, user, 0, "192.0.2.1", n)
}

// askAs is like ask, with a grant and an address.
func (w *instance) askAs(id, user string, grant ratelimit.Grants, address string, n int) (passed int) {
	w.t.Helper()
	p, now := w.policies.Snapshot(), w.clock.Now()
	kind := activity.Client
	if user != "" {
		kind = activity.User
	}
	for range n {
		d := w.counters.Take(now, ratelimit.Key{ClientID: id, Username: user}, p.For(id).ForRequest(grant, address), 1)
		again := map[ratelimit.Outcome]ratelimit.Outcome{ratelimit.Denied: ratelimit.Reused, ratelimit.WouldDeny: ratelimit.WouldReuse}
		if reused, over := again[d.Outcome]; over && p.For(id).Reuses() && user == "" { // as if there were always a last token
			d.Outcome = reused
		}
		later := map[ratelimit.Outcome]ratelimit.Outcome{ratelimit.Denied: ratelimit.Delayed, ratelimit.WouldDeny: ratelimit.WouldDelay}
		if delayed, over := later[d.Outcome]; over && p.For(id).Waits(ratelimit.Key{ClientID: id, Username: user}) { // as if there were always room in the queue
			d.Outcome = delayed
		}
		o := activity.Observation{ClientID: id, Username: user, Kind: kind, Decision: &d}
		if trial, ok := p.Trial(id); ok {
			if k, e, concerned := trial.Of(user, d.Overridden); concerned {
				cd := w.counters.Take(now, k, e.ForRequest(grant, address), 1)
				o.Tried, o.TriedSince = cd.Outcome, trial.Since
			}
		}
		w.recorder.Record(now, o)
		if !d.Rejected() {
			passed++
		}
	}
	return passed
}

// answer is a response.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// request is a request. Zero fields are left out. A body is JSON unless its type is set.
type request struct {
	method, path, token, ifMatch, ifNoneMatch, contentType, body, remote string
}

func (w *instance) send(r request) answer {
	w.t.Helper()
	req := httptest.NewRequestWithContext(w.t.Context(), r.method, "/admin/v1"+r.path, strings.NewReader(r.body))
	if r.contentType == "" && r.body != "" {
		r.contentType = "application/json"
	}
	for name, v := range map[string]string{
		"If-Match": r.ifMatch, "If-None-Match": r.ifNoneMatch, "Content-Type": r.contentType,
	} {
		if v != "" {
			req.Header.Set(name, v)
		}
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.remote != "" {
		req.RemoteAddr = r.remote
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, req)
	res := rec.Result()
	body, err := io.ReadAll(res.Body)
	check.OK(w.t, err)
	a := answer{w.t, res.StatusCode, res.Header, body}
	a.plausible(r)
	return a
}

// plausible checks the properties that all responses share.
func (a answer) plausible(r request) {
	a.t.Helper()
	if a.header.Get("Cache-Control") != "no-store" {
		a.t.Errorf("%s %s may be cached", r.method, r.path)
	}
	want := "application/json"
	if a.status >= 400 {
		want = "application/problem+json"
	}
	if len(a.body) > 0 && a.header.Get("Content-Type") != want {
		a.t.Errorf("%s %s: status %d with content type %q", r.method, r.path, a.status, a.header.Get("Content-Type"))
	}
	checkAgainstDocument(a.t, r, a)
}

func (w *instance) get(path string) answer {
	w.t.Helper()
	return w.send(request{method: http.MethodGet, path: path, token: reader}).is(http.StatusOK)
}

// change sends a change with the current ETag.
func (w *instance) change(method, path, body string) answer {
	w.t.Helper()
	resource, _, _ := strings.Cut(path, "?")
	etag := w.send(request{method: http.MethodGet, path: strings.TrimSuffix(resource, "/promote"), token: reader}).header.Get("ETag")
	types := map[string]string{http.MethodPut: "application/json", http.MethodPatch: "application/merge-patch+json"}
	return w.send(request{method: method, path: path, token: writer, ifMatch: etag, contentType: types[method], body: body})
}

func (w *instance) put(path, body string) answer {
	w.t.Helper()
	return w.change(http.MethodPut, path, body)
}

func (w *instance) patch(path, body string) answer {
	w.t.Helper()
	return w.change(http.MethodPatch, path, body)
}

func (a answer) is(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// into strictly decodes the body.
func (a answer) into(v any) {
	a.t.Helper()
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		a.t.Fatalf("%v in %s", err, a.body)
	}
}

// at returns a value in the body. The path has a name or an index per step.
func (a answer) at(path ...any) any {
	a.t.Helper()
	var v any
	if err := json.Unmarshal(a.body, &v); err != nil {
		a.t.Fatalf("%v in %s", err, a.body)
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, isObject := v.(map[string]any)
			if !isObject {
				a.t.Fatalf("nothing at %v in %s", path, a.body)
			}
			v = m[step]
		case int:
			l, isList := v.([]any)
			if !isList || step >= len(l) {
				a.t.Fatalf("nothing at %v in %s", path, a.body)
			}
			v = l[step]
		}
	}
	return v
}

// has checks values in the body. A field is written path=value: the path has the name or the index of
// each step, between dots, and # for the length of a list. A value is text or JSON, and null if it is missing.
func (a answer) has(fields ...string) answer {
	a.t.Helper()
	for _, field := range fields {
		path, want, _ := strings.Cut(field, "=")
		if got := a.text(strings.Split(path, ".")); got != want {
			a.t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	return a
}

// text returns the value at a path as text or JSON.
func (a answer) text(path []string) string {
	a.t.Helper()
	var steps []any
	for _, step := range path {
		if i, err := strconv.Atoi(step); err == nil {
			steps = append(steps, i)
		} else if step != "#" {
			steps = append(steps, step)
		}
	}
	v := a.at(steps...)
	if list, is := v.([]any); is && path[len(path)-1] == "#" {
		v = len(list)
	}
	if text, is := v.(string); is {
		return text
	}
	text, err := json.Marshal(v)
	check.OK(a.t, err)
	return string(text)
}

// says fails unless the body contains the text.
func (a answer) says(text string) answer {
	a.t.Helper()
	var p struct {
		Detail string `json:"detail"`
	}
	if err := json.Unmarshal(a.body, &p); err != nil || !strings.Contains(p.Detail, text) {
		a.t.Errorf("the answer does not say %q: %s", text, a.body)
	}
	return a
}
