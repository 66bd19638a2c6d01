package traffic

import (
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"oauth-server/internal/clientcfg"
)

// maxAnswer is the number of bytes of an answer that are read.
const maxAnswer = 64 << 10

// user is one user of a client: the refresh token is empty before the first sign-in.
type user struct {
	mu    sync.Mutex
	name  string
	token string
}

// users returns the users of a client, not signed in yet.
func (c *Client) users() []*user {
	all := make([]*user, len(c.Users))
	for i, name := range c.Users {
		all[i] = &user{name: name}
	}
	return all
}

// request is what is random about one request.
type request struct {
	user  *user // nil for client_credentials
	wrong bool  // with a wrong secret
}

func (c *Client) choose(random *rand.Rand, users []*user) request {
	next := request{wrong: random.Float64() < c.Wrong}
	if c.Grant == clientcfg.RefreshToken {
		next.user = users[random.IntN(len(users))]
	}
	return next
}

// send sends one token request of the client.
func (r *run) send(ctx context.Context, c *Client, next request) {
	if next.user != nil {
		r.sendUser(ctx, c, next)
		return
	}
	r.post(ctx, c, url.Values{"grant_type": {string(c.Grant)}}, next.wrong)
}

// sendUser refreshes the token of a user, or signs the user in. One request of a user at a
// time, because a refresh token works once.
func (r *run) sendUser(ctx context.Context, c *Client, next request) {
	u := next.user
	u.mu.Lock()
	defer u.mu.Unlock()
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {u.token}}
	if u.token == "" {
		form = url.Values{"grant_type": {"password"}, "username": {u.name}, "password": {r.Credentials.Passwords[u.name]}}
	}
	status, token := r.post(ctx, c, form, next.wrong)
	switch status {
	case http.StatusOK:
		u.token = token
	case http.StatusBadRequest: // used up or revoked
		u.token = ""
	}
}

// post sends a token request and counts its outcome. The status is 0 without an answer.
func (r *run) post(ctx context.Context, c *Client, form url.Values, wrong bool) (status int, refreshToken string) {
	secret := r.Credentials.Secrets[c.ID]
	if wrong {
		secret = secret[:len(secret)/2]
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.next()+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		r.count(c.ID, "error")
		return 0, ""
	}
	req.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(secret))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := r.client.Do(req)
	if err != nil {
		if ctx.Err() == nil { // the end of the run cancels the requests in flight
			r.count(c.ID, "error")
		}
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	r.count(c.ID, strconv.Itoa(res.StatusCode))
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&answer); err != nil {
		return 0, ""
	}
	return res.StatusCode, answer.RefreshToken
}
