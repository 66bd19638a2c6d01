package overload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"oauth-server/lab/openloop"
)

// mixed makes requests of a mix, and learns from the answers.
type mixed struct {
	world  *world
	mix    Mix
	random *rand.Rand
	ready  [Classes][][]byte // requests that can be sent any number of times
	sent   [Classes]int
	open   map[int]*grant // refresh tokens under way
	number int
	lacked error // the resource that ran out
}

func newMixed(w *world, mix Mix, seed uint64) *mixed {
	m := &mixed{world: w, mix: mix, open: map[int]*grant{}, random: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // G404: random classes, not a secret
	request := func(client, form string) []byte { return w.server.Request(client, w.server.Secrets[client], form) }
	for n := range clients * users {
		if n < clients {
			m.ready[Client] = append(m.ready[Client], request(shop(n), "grant_type=client_credentials"))
			m.ready[WrongSecret] = append(m.ready[WrongSecret], w.server.Request(shop(n), fmt.Sprintf("%043d", n), "grant_type=client_credentials"))
		}
		m.ready[SignIn] = append(m.ready[SignIn], request(shop(n/users), signInForm(user(n), password)))
		m.ready[WrongPassword] = append(m.ready[WrongPassword], request(shop(n/users), signInForm(fmt.Sprint("nobody-", n), password)))
	}
	m.ready[Greedy] = [][]byte{request(greedy, "grant_type=client_credentials")}
	m.ready[Denied] = m.ready[Greedy]
	return m
}

func signInForm(user, password string) string {
	return "grant_type=password&username=" + user + "&password=" + string(bytes.ReplaceAll([]byte(password), []byte(" "), []byte("+")))
}

// Next implements [openloop.Source].
func (m *mixed) Next() openloop.Call {
	c := m.draw()
	m.number++
	m.sent[c]++
	call := openloop.Call{Class: int(c), ID: m.number}
	switch c {
	case Code:
		g, ok := m.world.takeCode()
		if !ok {
			m.lacked = errors.New("there are no more codes")
		}
		call.Request = m.world.codeRequest(g)
	case Refresh:
		g := m.world.takeFamily()
		if g == nil {
			m.lacked = errors.New("there are no more refresh tokens")
			g = &grant{client: web(0)}
		}
		m.open[m.number] = g
		call.Request = m.world.refreshRequest(g)
	default:
		call.Request = m.ready[c][m.sent[c]%len(m.ready[c])]
	}
	return call
}

func (m *mixed) draw() Class {
	at := m.random.Float64()
	last := Client
	for c, share := range m.mix {
		if share == 0 {
			continue
		}
		if last = Class(c); at < share {
			break
		}
		at -= share
	}
	return last
}

// Done implements [openloop.Source]. It reuses a refresh token that got no answer, because a real
// client would retry too.
func (m *mixed) Done(c openloop.Call, status int, body []byte) {
	if Class(c.Class) != Refresh {
		return
	}
	g := m.open[c.ID]
	delete(m.open, c.ID)
	switch status {
	case 200:
		next, err := refreshTokenOf(body)
		if err != nil {
			m.lacked = err
			return
		}
		g.secret = next
	case 400: // the token is no longer valid
		return
	}
	m.world.families = append(m.world.families, g)
}

func (w *world) takeFamily() *grant {
	if len(w.families) == 0 {
		return nil
	}
	g := w.families[0]
	w.families = w.families[1:]
	return g
}

func (w *world) refreshRequest(g *grant) []byte {
	return w.server.Request(g.client, w.server.Secrets[g.client], "grant_type=refresh_token&refresh_token="+g.secret)
}

var refreshTokenField = []byte(`"refresh_token":"`)

// refreshTokenOf returns the refresh token of an answer, which needs no escapes in a form.
func refreshTokenOf(body []byte) (string, error) {
	_, rest, found := bytes.Cut(body, refreshTokenField)
	token, _, ended := bytes.Cut(rest, []byte{'"'})
	if !found || !ended || len(token) == 0 {
		return "", fmt.Errorf("no refresh token in %q", body)
	}
	return string(token), nil
}

// redeemer redeems codes, and keeps the refresh tokens.
type redeemer struct {
	world   *world
	open    map[int]grant
	number  int
	enough  func() // called after each
	failure string
}

func (r *redeemer) run(ctx context.Context) (*openloop.Result, error) {
	r.open = map[int]grant{}
	return openloop.Run(ctx, openloop.Options{
		Address: r.world.server.Address, Core: r.world.core, Closed: 32, Connections: 32, Phases: []openloop.Phase{{For: time.Minute}},
	}, r)
}

// Next implements [openloop.Source].
func (r *redeemer) Next() openloop.Call {
	g, _ := r.world.takeCode()
	r.number++
	r.open[r.number] = g
	return openloop.Call{Class: int(Code), ID: r.number, Request: r.world.codeRequest(g)}
}

// Done implements [openloop.Source].
func (r *redeemer) Done(c openloop.Call, status int, body []byte) {
	token, err := refreshTokenOf(body)
	if err == nil && status == 200 {
		r.world.families = append(r.world.families, &grant{r.open[c.ID].client, token})
	} else if status > 0 {
		r.failure = fmt.Sprintf("an answer was %d %s", status, body)
	}
	delete(r.open, c.ID)
	r.enough()
}
