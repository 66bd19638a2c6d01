package grants_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/go-oauth2/oauth2/v4"
	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/go-oauth2/oauth2/v4/models"
	"github.com/go-oauth2/oauth2/v4/server"

	"oauth-server/internal/check"
	"oauth-server/internal/store"
)

// stock is the library set up as its README says, for showing what a test of ours would find there.
// Its stores are maps.
type stock struct {
	manager *manage.Manager
	server  *server.Server

	mu      sync.Mutex
	clients map[string]*models.Client
	tokens  map[string]oauth2.TokenInfo // by code, access and refresh token
	fail    error                       // returned by every read of a token
	looked  func()                      // called after every read of a token
	hashed  bool                        // keep no code or token in clear
}

func newStock() *stock {
	s := &stock{
		manager: manage.NewDefaultManager(), looked: func() {}, tokens: map[string]oauth2.TokenInfo{},
		clients: map[string]*models.Client{
			"shop":  {ID: "shop", Secret: "s", Domain: "https://example.com"},
			"other": {ID: "other", Secret: "o", Domain: "https://other.example.com"},
			"empty": {ID: "empty", Secret: "", Domain: "https://example.com"},
		},
	}
	s.manager.MapClientStorage(s)
	s.manager.MapTokenStorage(s)
	s.server = server.NewDefaultServer(s.manager)
	s.server.UserAuthorizationHandler = func(http.ResponseWriter, *http.Request) (string, error) { return "alice", nil }
	return s
}

// GetByID behaves like the library's own client store.
func (s *stock) GetByID(_ context.Context, id string) (oauth2.ClientInfo, error) {
	if c, ok := s.clients[id]; ok {
		return c, nil
	}
	return nil, store.ErrNotFound
}

func (s *stock) Create(_ context.Context, ti oauth2.TokenInfo) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := *ti.(*models.Token)
	for _, k := range []string{kept.Code, kept.Access, kept.Refresh} {
		if k == "" {
			continue
		}
		if s.hashed {
			kept.Code, kept.Access, kept.Refresh = "", "", ""
		}
		s.tokens[k] = &kept
	}
	return nil
}

func (s *stock) get(k string) (oauth2.TokenInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	ti, ok := s.tokens[k]
	if !ok {
		return nil, nil
	}
	kept := *ti.(*models.Token)
	return &kept, nil
}

func (s *stock) look(k string) (oauth2.TokenInfo, error) {
	defer s.looked()
	return s.get(k)
}

func (s *stock) remove(k string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, k)
	return nil
}

func (s *stock) RemoveByCode(_ context.Context, k string) error    { return s.remove(k) }
func (s *stock) RemoveByAccess(_ context.Context, k string) error  { return s.remove(k) }
func (s *stock) RemoveByRefresh(_ context.Context, k string) error { return s.remove(k) }

func (s *stock) GetByCode(_ context.Context, k string) (oauth2.TokenInfo, error) { return s.look(k) }

func (s *stock) GetByAccess(_ context.Context, k string) (oauth2.TokenInfo, error) { return s.look(k) }

func (s *stock) GetByRefresh(_ context.Context, k string) (oauth2.TokenInfo, error) {
	return s.look(k)
}

// code gets an authorization code from the stock library.
func (s *stock) code(t *testing.T, edits ...func(*oauth2.TokenGenerateRequest)) string {
	t.Helper()
	req := &oauth2.TokenGenerateRequest{ClientID: "shop", UserID: "alice", RedirectURI: "https://example.com/cb", Scope: "read"}
	for _, edit := range edits {
		edit(req)
	}
	ti, err := s.manager.GenerateAuthToken(t.Context(), oauth2.Code, req)
	check.OK(t, err)
	return ti.GetCode()
}

func (s *stock) redeem(ctx context.Context, code, verifier string) (oauth2.TokenInfo, error) {
	return s.manager.GenerateAccessToken(ctx, oauth2.AuthorizationCode, &oauth2.TokenGenerateRequest{
		ClientID: "shop", ClientSecret: "s", RedirectURI: "https://example.com/cb", Code: code, CodeVerifier: verifier,
	})
}

// post sends a token request to the stock server.
func (s *stock) post(t *testing.T, form url.Values, id, secret string) (status int, body map[string]any, header http.Header) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(id, secret)
	rec := httptest.NewRecorder()
	check.OK(t, s.server.HandleTokenRequest(rec, r))
	check.OK(t, json.NewDecoder(rec.Body).Decode(&body))
	return rec.Code, body, rec.Header()
}
