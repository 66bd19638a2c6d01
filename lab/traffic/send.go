package traffic

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"oauth-server/internal/clientcfg"
	"oauth-server/lab/load"
)

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

// request holds the random choices of one request.
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

// send sends one token request of the client, or of one of its users.
func (r *run) send(ctx context.Context, c *Client, next request) {
	if next.user == nil {
		r.post(ctx, c, url.Values{"grant_type": {string(c.Grant)}}, next.wrong)
		return
	}
	// One request of a user at a time, because a refresh token works once.
	u := next.user
	u.mu.Lock()
	defer u.mu.Unlock()
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {u.token}}
	if u.token == "" {
		form = url.Values{"grant_type": {"password"}, "username": {u.name}, "password": {r.Credentials.Passwords[u.name]}}
	}
	answer := r.post(ctx, c, form, next.wrong)
	switch answer.Status {
	case http.StatusOK:
		u.token = answer.RefreshToken
	case http.StatusBadRequest: // used up or revoked
		u.token = ""
	}
}

// post sends a token request and counts its outcome. The status is 0 without an answer.
func (r *run) post(ctx context.Context, c *Client, form url.Values, wrong bool) load.Answer {
	secret := r.Credentials.Secrets[c.ID]
	if wrong {
		secret = secret[:len(secret)/2]
	}
	answer, err := load.Post(ctx, r.client, r.next()+"/token", c.ID, secret, form)
	if err != nil {
		if ctx.Err() == nil { // the end of the run cancels the requests in flight
			r.count(c.ID, "error")
		}
		return load.Answer{}
	}
	r.count(c.ID, strconv.Itoa(answer.Status))
	return answer
}
