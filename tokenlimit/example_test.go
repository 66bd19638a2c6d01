package tokenlimit_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/go-oauth2/oauth2/v4"
	"github.com/go-oauth2/oauth2/v4/errors"
	"github.com/go-oauth2/oauth2/v4/manage"
	"github.com/go-oauth2/oauth2/v4/models"
	"github.com/go-oauth2/oauth2/v4/server"

	"oauth-server/tokenlimit"
)

// A stock go-oauth2 server with two tokens a minute for each user.
func Example() {
	limits, err := tokenlimit.New(tokenlimit.Options{
		Default: tokenlimit.Policy{User: []tokenlimit.Limit{{Requests: 2, Window: time.Minute}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	srv := stockServer()
	mux := http.NewServeMux()
	mux.Handle("POST /token", limits.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = srv.HandleTokenRequest(w, r) // it has written the answer
	})))

	for _, user := range []string{"ada", "ada", "ada", "bob"} {
		answer := ask(mux, url.Values{"grant_type": {"password"}, "username": {user}, "password": {"right"}})
		fmt.Println(user, answer.Code)
	}
	// Output:
	// ada 200
	// ada 200
	// ada 429
	// bob 200
}

// stockServer returns a go-oauth2 server as in its README, with opaque tokens and one client.
func stockServer() *server.Server {
	manager := manage.NewDefaultManager()
	manager.MapClientStorage(clients{})
	manager.MapTokenStorage(tokens{})
	srv := server.NewDefaultServer(manager)
	srv.SetAllowedGrantType(oauth2.PasswordCredentials)
	srv.SetPasswordAuthorizationHandler(func(ctx context.Context, _, username, password string) (string, error) {
		if password != "right" {
			return "", errors.ErrInvalidGrant
		}
		tokenlimit.SetUser(ctx, username)
		return username, nil
	})
	return srv
}

// clients contains one client, shop.
type clients struct{}

func (clients) GetByID(_ context.Context, id string) (oauth2.ClientInfo, error) {
	if id != "shop" {
		return nil, errors.ErrInvalidClient
	}
	return &models.Client{ID: id, Secret: "secret"}, nil
}

// tokens stores nothing. The example does not use the other methods.
type tokens struct{ oauth2.TokenStore }

func (tokens) Create(context.Context, oauth2.TokenInfo) error { return nil }

// ask sends a token request of the client shop.
func ask(h http.Handler, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth("shop", "secret")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
