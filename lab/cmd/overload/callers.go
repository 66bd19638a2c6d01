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
	open   map[int]*grant // refresh tokens under way; with enough, also codes
	enough int            // redeem codes until there are so many refresh tokens; 0: forever, and the tokens are not kept
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
	m.ready[denied] = [][]byte{w.request(greedy, servers.Own())}
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
		if m.enough > 0 && len(m.world.families)+len(m.open) >= m.enough {
			return call, false
		}
		if len(m.world.codes) == 0 {
			m.lacked = errors.New("there are no more codes")
			return call, false
		}
		g := m.world.takeCode()
		call.Request = m.world.codeRequest(g)
		if m.enough > 0 {
			m.open[m.number] = &g
		}
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
	g, under := m.open[c.ID]
	if !under {
		return
	}
	delete(m.open, c.ID)
	token := load.RefreshToken(body)
	switch {
	case token != "":
		g.secret = token
	case status == 200 || class(c.Class) == code:
		m.lacked = fmt.Errorf("no refresh token: %d %s", status, body)
		return
	case status == 400: // the token is no longer valid
		return
	}
	m.world.families = append(m.world.families, g)
}

// redeem redeems codes for the refresh tokens that a load begins with.
func (w *world) redeem(ctx context.Context, n int) error {
	const atOnce = 32
	m := newMixed(w, only(code), 1)
	m.enough = n
	_, err := load.Run(ctx, load.Options{Address: w.server.Address, Core: w.core},
		load.Stream{Phases: load.Steady(0, time.Minute), Closed: atOnce, Source: m})
	if err == nil && len(w.families) < n {
		err = errors.Join(fmt.Errorf("%d of %d codes were redeemed", len(w.families), n), m.lacked)
	}
	return err
}
