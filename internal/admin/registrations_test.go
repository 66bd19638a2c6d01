package admin_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/admin"
	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

func (w *instance) post(path, body string) answer {
	w.t.Helper()
	return w.send(request{method: http.MethodPost, path: path, token: writer, body: body})
}

// events returns the changes of clients and users in the trail, newest first.
func (w *instance) events(query string) (out []string) {
	w.t.Helper()
	var page adminapi.Audit
	w.get("/audit" + query).into(&page)
	for _, e := range page.Entries {
		out = append(out, e.Action+" "+e.Target+strings.TrimSuffix(" "+e.Outcome, " "))
	}
	return out
}

// TestLifeOfAClient follows a client from its registration to its deletion.
func TestLifeOfAClient(t *testing.T) {
	w := newWorld(t)
	made := w.post("/clients?reason=ticket+7", `{"client_id": "new", "client_name": "New", "scope": "a b"}`).is(http.StatusCreated)
	shown, _ := made.at("client_secret").(string)
	check.Equal(t, "a secret", len(shown), 43)
	made.has("client_secret_expires_at=0")
	check.Equal(t, "where it is", made.header.Get("Location"), "/admin/v1/clients/new")
	made.has("grant_types.0=client_credentials")
	stored, err := w.store.Client(t.Context(), "new")
	check.OK(t, err)
	check.Equal(t, "the secret works", stored.SecretDigest.Matches(shown), true)
	w.get("/clients?prefix=ne").has("clients.0.client_id=new")

	w.patch("/clients/new", `{"redirect_uris": ["https://new.example/cb"], "client_name": null}`).is(http.StatusOK)
	w.get("/clients/new").has("scope=a b", "client_name=null")
	w.put("/clients/new", `{"client_id": "new", "grant_types": ["client_credentials"]}`).is(http.StatusOK)
	w.get("/clients/new").has("scope=null", "secrets.0.current=true")

	w.post("/clients/new/revoke", "").is(http.StatusOK)
	w.change(http.MethodDelete, "/clients/new", "").is(http.StatusNoContent)
	w.send(request{method: http.MethodGet, path: "/clients/new", token: reader}).is(http.StatusNotFound)
	want := []string{"delete clients/new", "revoke clients/new", "update clients/new", "update clients/new", "create clients/new"}
	check.Equal(t, "trail", w.events("?target=clients/new"), want)
	first := w.get("/audit?target=clients/new&limit=5").at("entries", 4)
	check.Equal(t, "who", first.(map[string]any)["actor"].(map[string]any)["client_id"], any("ops"))
	check.Equal(t, "why", first.(map[string]any)["reason"], any("ticket 7"))
	for _, e := range w.get("/audit").at("entries").([]any) {
		if strings.Contains(string(w.get("/audit").body), shown) || strings.Contains(string(w.get("/audit").body), stored.SecretDigest.String()) {
			t.Errorf("the trail has the secret: %v", e)
		}
	}
}

// TestSecrets: a secret is only in the response that creates it. The previous one is valid for a
// while.
//
// Attack (operators): Reading client secrets. A secret appears only in the response that creates
// it.
func TestSecrets(t *testing.T) {
	w := newWorld(t)
	added := w.post("/clients/shop/secrets", `{"overlap": "24h"}`).is(http.StatusCreated)
	shown, _ := added.at("client_secret").(string)
	var list adminapi.Secrets
	body := w.get("/clients/shop/secrets")
	body.into(&list)
	if len(list.Secrets) != 2 || !list.Secrets[0].Current || list.Secrets[1].Until.IsZero() || list.Secrets[0].ID == list.Secrets[1].ID {
		t.Errorf("%+v", list)
	}
	for _, hidden := range []string{shown, secret.DigestOf(shown).String()[:12], secret.DigestOf("s").String()[:12]} {
		if strings.Contains(string(body.body), hidden) {
			t.Errorf("%q is shown: %s", hidden, body.body)
		}
	}
	used := w.clock.Now().UTC().Truncate(time.Minute)
	check.OK(t, w.store.RecordUses(t.Context(), []clientcfg.SecretUse{{ClientID: "shop", Digest: secret.DigestOf("s"), At: used}}))
	w.get("/clients/shop/secrets").into(&list)
	check.Equal(t, "last use of the one before", list.Secrets[1].Used, used)

	remove := func(id string) answer {
		t.Helper()
		return w.send(request{method: http.MethodDelete, path: "/clients/shop/secrets/" + id, token: writer})
	}
	remove(list.Secrets[0].ID).is(http.StatusConflict).says("first add another one")
	remove("0123").is(http.StatusNotFound)
	remove(list.Secrets[1].ID).is(http.StatusNoContent)
	stored, err := w.store.Client(t.Context(), "shop")
	check.OK(t, err)
	check.Equal(t, "the newest is left", stored.SecretDigest.Matches(shown) && stored.Former == clientcfg.FormerSecret{}, true)
	check.Equal(t, "trail", w.events(""), []string{"retire_secret clients/shop", "add_secret clients/shop"})
	for body, field := range map[string]string{
		`{"overlap": "a day"}`: "overlap", `{"overlap": "721h"}`: "overlap", `{"overlap": "1h", "revoke": true}`: "overlap", `{"over": 1}`: "over",
	} {
		w.post("/clients/shop/secrets", body).is(http.StatusUnprocessableEntity).has("errors.0.field=" + field)
	}
	check.OK(t, w.store.CreateClient(t.Context(), clientcfg.Client{ID: "native", Public: true, Grants: []clientcfg.Grant{clientcfg.RefreshToken}}, clientcfg.Event{}))
	w.post("/clients/native/secrets", "").is(http.StatusConflict).says("no secret")
}

// TestUnreadableRegistration: an unreadable client is listed, and can be removed.
func TestUnreadableRegistration(t *testing.T) {
	w := newWorld(t)
	check.OK(t, w.store.CreateClient(t.Context(), clientcfg.Client{ID: "bad", Public: true, Grants: []clientcfg.Grant{"of_tomorrow"}}, clientcfg.Event{}))
	w.get("/clients?prefix=b").has("unreadable.0.client_id=bad", "clients.#=0")
	w.send(request{method: http.MethodGet, path: "/clients/bad", token: reader}).is(http.StatusConflict).says("of_tomorrow")
	w.send(request{method: http.MethodPost, path: "/clients/bad/revoke", token: writer}).is(http.StatusConflict)
	w.send(request{method: http.MethodDelete, path: "/clients/bad", token: writer, ifMatch: "*"}).is(http.StatusNoContent)
	check.Equal(t, "trail", w.events(""), []string{"delete clients/bad"})
}

func TestMetadataIsStrict(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ body, fields string }{
		{`{}`, "client_id"},
		{
			`{"client_id": "a b", "grant_types": ["implicit", 3], "scope": "\"", "redirect_uris": ["x"], "extra": 1}`,
			"client_id scope redirect_uris[0] grant_types[0] grant_types[1] extra",
		},
		{`{"client_id": "x", "token_endpoint_auth_method": "private_key_jwt", "response_types": ["token"]}`, "token_endpoint_auth_method response_types[0]"},
		{`{"client_id": "x", "token_endpoint_auth_method": "none", "require_pkce": false, "resource_server": true}`, "redirect_uris resource_server require_pkce"},
		{`{"client_id": "x", "client_secret": "mine"}`, "client_secret"},
		{`{"client_id": "x", "client_secret_hash": "mine"}`, "client_secret_hash"},
		{`{"client_id": "x", "client_name": "` + strings.Repeat("n", 201) + `"}`, "client_name"},
	} {
		a := w.post("/clients", tt.body).is(http.StatusUnprocessableEntity)
		var got []string
		for _, e := range a.at("errors").([]any) {
			got = append(got, e.(map[string]any)["field"].(string))
		}
		want := strings.Fields(tt.fields)
		slices.Sort(got)
		slices.Sort(want)
		check.Equal(t, tt.body, got, want)
	}
	w.post("/clients", `{"client_id"`).is(http.StatusBadRequest)
	check.Equal(t, "a client cannot lose its secret",
		w.patch("/clients/shop", `{"token_endpoint_auth_method": "none", "grant_types": ["refresh_token"]}`).is(http.StatusUnprocessableEntity).at("errors", 0, "field"),
		any("token_endpoint_auth_method"))
	w.patch("/clients/shop", `{"client_id": "other"}`).is(http.StatusUnprocessableEntity)
	if e := w.events(""); len(e) > 0 {
		t.Errorf("what was refused is in the trail: %v", e)
	}
}

// TestConditionsAndScopes: a change needs the ETag of the state that it is based on, and the scope.
func TestConditionsAndScopes(t *testing.T) {
	w := newWorld(t)
	etag := w.get("/clients/shop").header.Get("ETag")
	send := func(method, path, token, ifMatch, body string) answer {
		t.Helper()
		return w.send(request{method: method, path: path, token: token, ifMatch: ifMatch, body: body})
	}
	send(http.MethodPatch, "/clients/shop", writer, "", `{}`).is(http.StatusPreconditionRequired)
	send(http.MethodPatch, "/clients/shop", writer, etag, `{"scope": "x"}`).is(http.StatusOK)
	send(http.MethodPatch, "/clients/shop", writer, etag, `{"scope": "y"}`).is(http.StatusPreconditionFailed)
	send(http.MethodDelete, "/clients/shop", writer, etag, "").is(http.StatusPreconditionFailed)
	send(http.MethodPost, "/clients/shop/secrets", writer, etag, `{}`).is(http.StatusPreconditionFailed)
	send(http.MethodPatch, "/clients/shop", reader, "*", `{}`).is(http.StatusForbidden)
	// A token for changing limits cannot change clients.
	send(http.MethodPatch, "/clients/shop", "of-a-user", "*", `{}`).is(http.StatusForbidden)
	send(http.MethodGet, "/users/ada", "of-a-user", "", "").is(http.StatusForbidden)
	w.send(request{method: http.MethodGet, path: "/clients/shop", token: reader, ifNoneMatch: w.get("/clients/shop").header.Get("ETag")}).is(http.StatusNotModified)
}

// TestNoLockOut: changing the caller's own client, and the last client that can change clients,
// needs confirmation.
//
// Attack (operators): Operators lock themselves out. Removing one's own or the last admin client
// needs confirmation.
func TestNoLockOut(t *testing.T) {
	w := newWorld(t)
	w.change(http.MethodDelete, "/clients/ops", "").is(http.StatusConflict).says("confirm=ops")
	w.patch("/clients/ops", `{"scope": "ratelimit:write"}`).is(http.StatusConflict).says("makes this change")
	w.patch("/clients/ops", `{"client_name": "Operators"}`).is(http.StatusOK)
	w.tokens["other"] = w.tokens[writer]
	other := w.tokens["other"]
	other.ClientID = "second"
	w.tokens["other"] = other
	w.post("/clients", `{"client_id": "second", "scope": "registrations:write", "audience": ["urn:oauth-server:admin"]}`).is(http.StatusCreated)
	remove := func(path, token string) answer {
		t.Helper()
		return w.send(request{method: http.MethodDelete, path: path, token: token, ifMatch: "*"})
	}
	remove("/clients/ops?confirm=second", writer).is(http.StatusConflict)
	remove("/clients/second", writer).is(http.StatusNoContent)
	w.post("/clients", `{"client_id": "second", "scope": "registrations:write", "audience": ["urn:oauth-server:admin"]}`).is(http.StatusCreated)
	remove("/clients/ops", "other").is(http.StatusNoContent) // another one is left
	remove("/clients/second", "other").is(http.StatusConflict).says("makes this change")
	remove("/clients/second?confirm=second", "other").is(http.StatusNoContent)
}

func TestLifeOfAUser(t *testing.T) {
	w := newWorld(t)
	made := w.post("/users", `{"username": "Grace", "password": "`+adasPassword+`", "operator": "read"}`).is(http.StatusCreated).has("username=grace")
	check.Equal(t, "where", made.header.Get("Location"), "/admin/v1/users/grace")
	w.post("/users", `{"username": "a b", "password": "short", "operator": "much", "x": 1}`).is(http.StatusUnprocessableEntity).has("errors.#=4")
	w.post("/users", `{"username": "a b", "password": "short"}`).is(http.StatusUnprocessableEntity).has("errors.1.field=password")

	w.patch("/users/grace", `{"operator": "write"}`).is(http.StatusOK)
	w.patch("/users/grace", `{"operator": "all"}`).is(http.StatusUnprocessableEntity)
	w.patch("/users/grace", `{"username": "bob"}`).is(http.StatusUnprocessableEntity)
	w.send(request{method: http.MethodPatch, path: "/users/grace", token: writer, body: `{}`}).is(http.StatusPreconditionRequired)
	w.get("/users/GRACE").has("operator=write")
	w.send(request{method: http.MethodPut, path: "/users/grace/password", token: writer, body: `{"password": "grace123"}`}).is(http.StatusUnprocessableEntity)
	w.send(request{method: http.MethodPut, path: "/users/grace/password", token: writer, body: `{"password": "another staple for g"}`}).is(http.StatusOK)
	w.post("/users/grace/revoke", "").is(http.StatusOK)
	w.post("/users/grace/unlock", "").is(http.StatusOK)
	w.change(http.MethodDelete, "/users/grace", "").is(http.StatusNoContent)
	w.send(request{method: http.MethodGet, path: "/users/grace", token: reader}).is(http.StatusNotFound)
	want := []string{"delete users/grace", "unlock users/grace", "revoke users/grace", "password users/grace", "operator users/grace", "create users/grace"}
	check.Equal(t, "trail", w.events(""), want)
	if body := string(w.get("/audit").body); strings.Contains(body, "staple") || strings.Contains(body, "argon2") {
		t.Errorf("a password in the trail: %s", body)
	}
}

const adasPassword = "correct horse battery staple"

// TestSignIns lists a user's sign-ins, and ends one or all.
func TestSignIns(t *testing.T) {
	w := newWorld(t)
	ctx, now := t.Context(), w.clock.Now()
	for _, cookie := range []string{"one", "two", "three"} {
		check.OK(t, w.store.CreateSession(ctx, accounts.Session{Key: secret.DigestOf(cookie).Key(), Username: "ada", CreatedAt: now, ExpiresAt: now.Add(time.Hour)}, 9))
		check.OK(t, w.store.CreateGrant(ctx, grants.Grant{
			Authorization: grants.Authorization{ClientID: "app", Username: "ada", Family: "f-" + cookie, AuthTime: now, Scopes: []string{"a"}},
			Digest:        secret.DigestOf("f" + cookie), Generation: 1, IssuedAt: now, ExpiresAt: now.Add(time.Hour),
		}))
	}
	for _, kind := range []string{"sessions", "families"} {
		list := func() []any {
			t.Helper()
			return w.get("/users/ada/" + kind).at(kind).([]any)
		}
		end := func(id string) answer {
			t.Helper()
			return w.send(request{method: http.MethodDelete, path: "/users/ada/" + kind + id, token: writer})
		}
		check.Equal(t, kind, len(list()), 3)
		id := list()[1].(map[string]any)["id"].(string)
		end("/" + id).is(http.StatusOK).has("ended=1")
		check.Equal(t, kind, len(list()), 2)
		end("/" + id).is(http.StatusNotFound)
		end("").is(http.StatusOK).has("ended=2")
		check.Equal(t, kind, len(list()), 0)
	}
	_, err := w.store.Session(ctx, secret.DigestOf("one").Key())
	check.Equal(t, "the session is gone", errors.Is(err, store.ErrNotFound), true)
	revoked, err := w.store.Revoked(ctx, "family:f-one")
	check.OK(t, err)
	check.Equal(t, "the family is revoked", revoked, true)
	check.Equal(t, "trail", len(w.events("?target=users/ada")), 6)
	w.send(request{method: http.MethodGet, path: "/users/nobody/sessions", token: reader}).is(http.StatusNotFound)
}

// TestRegistrationUnderLimitsThatLockOut: the registration is not refused, and the response shows
// the limits in force.
func TestRegistrationUnderLimitsThatLockOut(t *testing.T) {
	w := newWorld(t)
	w.put("/policies/ops", `{"trusted":true}`).is(http.StatusOK)
	w.patch("/settings", `{"default":{"client":[{"name":"daily","requests":1,"window":"24h"}]}}`).is(http.StatusOK)
	const admin = `"scope": "ratelimit:write", "audience": ["urn:oauth-server:admin"]`
	says := func(a answer, want string) {
		t.Helper()
		got, _ := a.at("locked_out").(string)
		check.Equal(t, "locked_out", strings.Contains(got, want) && (got == "") == (want == ""), true)
	}
	says(w.post("/clients", `{"client_id": "second", `+admin+`}`).is(http.StatusCreated), `the limit "daily" of 1 requests`)
	says(w.get("/clients/second"), "daily")
	says(w.patch("/clients/shop", `{`+admin+`}`).is(http.StatusOK), "daily")
	says(w.patch("/clients/app", `{"client_name": "App"}`).is(http.StatusOK), "")
	w.put("/policies/second", `{"trusted":true}`).is(http.StatusOK)
	says(w.get("/clients/second"), "")
}

// TestNamesThatAreTaken: the response says whether a user or a client has the name.
//
// Attack (rfc9700): 4.15 client as resource owner. A client and a user cannot have the same
// name.
func TestNamesThatAreTaken(t *testing.T) {
	w := newWorld(t)
	const password = `"password": "correct horse battery staple"`
	w.post("/users", `{"username": "grace", `+password+`}`).is(http.StatusCreated)
	for _, tt := range []struct{ path, body, says string }{
		{"/clients", `{"client_id": "shop"}`, "client \"shop\" already exists"},
		{"/clients", `{"client_id": "grace"}`, "user \"grace\" has this name"},
		{"/users", `{"username": "grace", ` + password + `}`, "user \"grace\" already exists"},
		{"/users", `{"username": "GRACE", ` + password + `}`, "user \"grace\" already exists"},
		{"/users", `{"username": "shop", ` + password + `}`, "client \"shop\" has this ID"},
	} {
		a := w.post(tt.path, tt.body).is(http.StatusConflict)
		check.Equal(t, tt.body, strings.HasPrefix(a.at("detail").(string), tt.says), true)
	}
}

// withoutAgreements is a store with unreachable agreements.
type withoutAgreements struct{ *shared }

func (w withoutAgreements) List(ctx context.Context, t store.Table, q store.Query, each func(store.Record) error) error {
	if t.Name == "agreements" {
		return errors.New("the store is away")
	}
	return w.shared.List(ctx, t, q, each)
}

func TestConsentsAreListedAndWithdrawn(t *testing.T) {
	w := newWorld(t)
	agreed := grants.Agreement{
		Username: "ada", ClientID: "shop", ID: "id", Scopes: []string{"orders:read"},
		AgreedAt: noon, UsedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
	check.OK(t, w.store.PutAgreement(t.Context(), agreed))
	a := w.get("/users/ADA/consents") // in any case of letters
	a.has("username=ada", "consents.0.client_id=shop", "consents.0.scopes.0=orders:read", "consents.0.agreed_at=2026-03-01T12:00:00Z")
	w.get("/users/rob/consents").has("consents.#=0")

	const path = "/users/ada/consents/shop"
	for _, tt := range []struct {
		method, path, token string
		want                int
	}{
		{http.MethodDelete, path, reader, http.StatusForbidden},
		{http.MethodDelete, path + "?force=1", writer, http.StatusUnprocessableEntity},
		{http.MethodDelete, "/users/ada/consents/app", writer, http.StatusNotFound},
		{http.MethodDelete, "/users/nobody/consents/shop", writer, http.StatusNotFound},
		{http.MethodGet, "/users/nobody/consents", reader, http.StatusNotFound},
		{http.MethodGet, "/users/%20/consents", reader, http.StatusNotFound},
		{http.MethodDelete, path, writer, http.StatusNoContent},
		{http.MethodDelete, path, writer, http.StatusNotFound},
	} {
		check.Equal(t, tt.method+" "+tt.path, w.send(request{method: tt.method, path: tt.path, token: tt.token}).status, tt.want)
	}
	revoked, err := w.store.Revoked(t.Context(), agreed.RevocationNames()...)
	check.OK(t, err)
	check.Equal(t, "what came of it is revoked", revoked, true)
	w.get("/audit?target=users/ada").has("entries.0.action=withdraw_consent")

	w = newInstance(t, "i-2", w.store, file(), func(o *admin.Options) { o.Registry = withoutAgreements{w.store} })
	check.Equal(t, "away", w.send(request{method: http.MethodGet, path: "/users/ada/consents", token: reader}).status, http.StatusServiceUnavailable)
}
