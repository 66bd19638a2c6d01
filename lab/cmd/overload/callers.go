package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/servers"
)

// mixed makes requests of a mix, and learns from the answers.
type mixed struct {
	world  *world
	mix    mix
	random *rand.Rand
	ready  [classes][][]byte // requests that can be sent any number of times
	sent   [classes]int
	open   map[int]*grant // refresh tokens under way
	number int
	lacked error // the resource that ran out
}

func newMixed(w *world, x mix, seed uint64) *mixed {
	m := &mixed{world: w, mix: x, open: map[int]*grant{}, random: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // G404: random classes, not a secret
	for n := range clients * users {
		if n < clients {
			m.ready[clientOnly] = append(m.ready[clientOnly], w.request(shop(n), servers.Own()))
			m.ready[wrongSecret] = append(m.ready[wrongSecret], w.server.Request(shop(n), fmt.Sprintf("%043d", n), servers.Own().Encode()))
		}
		m.ready[signIn] = append(m.ready[signIn], w.request(shop(n/users), servers.SignIn(user(n), password)))
		m.ready[wrongPassword] = append(m.ready[wrongPassword], w.request(shop(n/users), servers.SignIn(fmt.Sprint("nobody-", n), password)))
	}
	m.ready[greedyOne] = [][]byte{w.request(greedy, servers.Own())}
	m.ready[denied] = m.ready[greedyOne]
	return m
}

// request returns the bytes of a token request of a client.
func (w *world) request(client string, form url.Values) []byte {
	return w.server.Request(client, w.server.Secrets[client], form.Encode())
}

// Next implements [load.Source].
func (m *mixed) Next() (load.Call, bool) {
	c := m.draw()
	m.number++
	m.sent[c]++
	call := load.Call{Class: int(c), ID: m.number}
	switch c {
	case code:
		if len(m.world.codes) == 0 {
			m.lacked = errors.New("there are no more codes")
			return call, false
		}
		call.Request = m.world.codeRequest(m.world.takeCode())
	case refresh:
		if len(m.world.families) == 0 {
			m.lacked = errors.New("there are no more refresh tokens")
			return call, false
		}
		g := m.world.families[0]
		m.world.families, m.open[m.number] = m.world.families[1:], g
		call.Request = m.world.request(g.client, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.secret}})
	default:
		call.Request = m.ready[c][m.sent[c]%len(m.ready[c])]
	}
	return call, true
}

func (m *mixed) draw() class {
	at := m.random.Float64()
	last := clientOnly
	for c, share := range m.mix {
		if share == 0 {
			continue
		}
		if last = class(c); at < share {
			break
		}
		at -= share
	}
	return last
}

// Done implements [load.Source]. It reuses a refresh token that got no answer, because a real
// client would retry too.
func (m *mixed) Done(c load.Call, status int, body []byte) {
	if class(c.Class) != refresh {
		return
	}
	g := m.open[c.ID]
	delete(m.open, c.ID)
	switch status {
	case 200:
		if g.secret = load.RefreshToken(body); g.secret == "" {
			m.lacked = fmt.Errorf("no refresh token in %q", body)
			return
		}
	case 400: // the token is no longer valid
		return
	}
	m.world.families = append(m.world.families, g)
}

// redeemer redeems codes until there are enough refresh tokens.
type redeemer struct {
	world   *world
	enough  int
	open    map[int]grant
	number  int
	failure string
}

// redeem redeems codes for the refresh tokens that a load begins with.
func (w *world) redeem(ctx context.Context, n int) error {
	const atOnce = 32
	r := &redeemer{world: w, enough: n, open: map[int]grant{}}
	_, err := load.Run(ctx, load.Options{Address: w.server.Address, Core: w.core},
		load.Stream{Phases: load.Steady(0, time.Minute), Closed: atOnce, Source: r})
	if err == nil && len(w.families) < n {
		err = fmt.Errorf("%d of %d codes were redeemed; %s", len(w.families), n, r.failure)
	}
	return err
}

// Next implements [load.Source].
func (r *redeemer) Next() (load.Call, bool) {
	if len(r.world.families)+len(r.open) >= r.enough || len(r.world.codes) == 0 {
		return load.Call{}, false
	}
	g := r.world.takeCode()
	r.number++
	r.open[r.number] = g
	return load.Call{Class: int(code), ID: r.number, Request: r.world.codeRequest(g)}, true
}

// Done implements [load.Source].
func (r *redeemer) Done(c load.Call, status int, body []byte) {
	if token := load.RefreshToken(body); token != "" {
		r.world.families = append(r.world.families, &grant{r.open[c.ID].client, token})
	} else {
		r.failure = fmt.Sprintf("an answer was %d %s", status, body)
	}
	delete(r.open, c.ID)
}
