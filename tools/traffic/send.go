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

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 10

// user is one person with the app: its refresh token, once signed in.
type user struct {
	mu    sync.Mutex
	name  string
	token string
}

// users are the people of a member of the cast.
func (r *run) users(m *Member) []*user {
	people := make([]*user, len(m.Users))
	for i, name := range m.Users {
		people[i] = &user{name: name}
	}
	return people
}

// send makes one token request of the member.
func (r *run) send(ctx context.Context, m *Member, users []*user) {
	if m.Grant == clientcfg.RefreshToken {
		r.sendUser(ctx, m, users[rand.IntN(len(users))]) //nolint:gosec // only load
		return
	}
	r.post(ctx, m, url.Values{"grant_type": {string(m.Grant)}})
}

// sendUser signs a person in, or refreshes their token, one after the other: a
// refresh token works once.
func (r *run) sendUser(ctx context.Context, m *Member, u *user) {
	u.mu.Lock()
	defer u.mu.Unlock()
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {u.token}}
	if u.token == "" {
		form = url.Values{"grant_type": {"password"}, "username": {u.name}, "password": {r.Credentials.Passwords[u.name]}}
	}
	status, token := r.post(ctx, m, form)
	switch status {
	case http.StatusOK:
		u.token = token
	case http.StatusBadRequest: // used up or revoked
		u.token = ""
	}
}

// post sends a token request; the status is 0 if no answer came.
func (r *run) post(ctx context.Context, m *Member, form url.Values) (status int, refreshToken string) {
	secret := r.Credentials.Secrets[m.ID]
	if rand.Float64() < m.Wrong { //nolint:gosec // only load
		secret = secret[:len(secret)/2]
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.next()+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		r.count(m.ID, "error")
		return 0, ""
	}
	req.SetBasicAuth(url.QueryEscape(m.ID), url.QueryEscape(secret))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := r.client.Do(req)
	if err != nil {
		if ctx.Err() == nil { // at the end, everybody hangs up
			r.count(m.ID, "error")
		}
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	r.count(m.ID, strconv.Itoa(res.StatusCode))
	var answer struct {
		RefreshToken string `json:"refresh_token"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&answer); err != nil {
		return 0, ""
	}
	return res.StatusCode, answer.RefreshToken
}
