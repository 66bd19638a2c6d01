package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/servers"
)

// goodClient is a client that behaves well.
type goodClient struct {
	id    string
	user  string // the user of its tokens; empty: client_credentials
	token string // the refresh token
}

// good is the requests of good clients. Each client has one request under way at most.
type good struct {
	server *servers.Server
	free   []*goodClient
	open   map[int]*goodClient
	sent   int
}

// stream returns the requests of a phase. A connection less than clients leaves one client for the request that waits.
func (g *good) stream(length time.Duration) load.Stream {
	n := len(g.free)
	return load.Stream{Phases: load.Steady(float64(n*goodRate), length), Patience: patience, Connections: n - 1, Source: g}
}

// freshConnectionEvery makes clients connect anew at times, so that connecting is measured too.
const freshConnectionEvery = 10

// Next implements [load.Source].
func (g *good) Next() (load.Call, bool) {
	c := g.free[0]
	g.free = g.free[1:]
	g.sent++
	g.open[g.sent] = c
	form := servers.Own()
	switch {
	case c.token != "":
		form = refreshForm(c.token)
	case c.user != "":
		form = servers.SignIn(c.user, password)
	}
	request := g.server.Request(c.id, g.server.Secrets[c.id], form.Encode())
	if g.sent%freshConnectionEvery == 0 {
		request = bytes.Replace(request, []byte("\r\n\r\n"), []byte("\r\nConnection: close\r\n\r\n"), 1)
	}
	return load.Call{ID: g.sent, Request: request}, true
}

// Done implements [load.Source]. After invalid_grant the client signs in again.
func (g *good) Done(call load.Call, status int, body []byte) {
	c := g.open[call.ID]
	delete(g.open, call.ID)
	if token := load.RefreshToken(body); token != "" || status == http.StatusBadRequest {
		c.token = token
	}
	g.free = append(g.free, c)
}

// attackKind names an attack.
type attackKind string

const (
	slowConnections attackKind = "slow connections"
	signIns         attackKind = "sign-ins"
	unknownClients  attackKind = "unknown clients"
	randomTokens    attackKind = "random refresh tokens"
	spentTokens     attackKind = "spent refresh tokens"
	introspections  attackKind = "introspection"
)

var attackKinds = []attackKind{slowConnections, signIns, unknownClients, randomTokens, spentTokens, introspections}

const (
	// maxInFlight bounds the requests of a flood from one address without an answer: as many as the connections that
	// repeat one right password in the e2e test of sign-ins.
	maxInFlight = 150
	// names is the number of usernames that wrong passwords are tried with.
	names = 1000
	// families is the number of sign-ins with spent refresh tokens in one phase.
	families = 10
)

// flood returns how to make the requests of an attack.
func (s *soak) flood(ctx context.Context, kind attackKind, seed uint64) (func(n int) []byte, error) {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // G404: the same choices in every run
	app := func(form url.Values) []byte {
		form.Set("client_id", attackApp)
		return s.server.Request("", "", form.Encode())
	}
	switch kind {
	case signIns: // the right password of one account, and wrong ones of many
		return func(int) []byte {
			if random.IntN(2) == 0 {
				return app(servers.SignIn(attackUser, password))
			}
			return app(servers.SignIn(userName(random.IntN(names)), text(random)))
		}, nil
	case unknownClients:
		return func(int) []byte { return s.server.Request("c-"+text(random), text(random), servers.Own().Encode()) }, nil
	case spentTokens:
		spent, err := s.spent(ctx)
		return func(n int) []byte { return app(refreshForm(spent[n%len(spent)])) }, err
	case introspections: // of a valid token, and of random ones
		return func(int) []byte {
			token := s.token
			if random.IntN(2) == 0 {
				token = text(random)
			}
			return load.Request(s.server.Address, "/introspect", attackAPI, s.server.Secrets[attackAPI], "token="+token)
		}, nil
	default: // randomTokens
		return func(int) []byte { return app(refreshForm(text(random))) }, nil
	}
}

// spent returns refresh tokens that have been used. Of each family there are two.
func (s *soak) spent(ctx context.Context) (tokens []string, err error) {
	for range families {
		form := servers.SignIn(attackUser, password)
		for range 3 {
			answer, err := s.server.Token(ctx, attackApp, form)
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, answer.RefreshToken)
			form = refreshForm(answer.RefreshToken)
		}
		tokens = tokens[:len(tokens)-1] // the last one has not been used
	}
	return tokens, nil
}

func refreshForm(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}
}

// text returns a random string of the form and length of a refresh token.
func text(random *rand.Rand) string {
	return fmt.Sprintf("%016x%016x%011x", random.Uint64(), random.Uint64(), random.Uint64()>>20)
}
