package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// maxInFlight bounds the requests of one flood without an answer: as many as the connections that
// repeat one right password in the e2e test of sign-ins.
const maxInFlight = 150

// names is the number of usernames that wrong passwords are tried with.
const names = 1000

// flood sends requests at a constant rate, whether or not the earlier ones are answered. With too
// many in flight a request is counted as "not sent".
func (p *plan) flood(ctx context.Context, t *tally, kind attackKind, clients []*http.Client, random *rand.Rand) {
	interval := time.Duration(float64(time.Second) / p.Rate)
	inFlight := make(chan struct{}, maxInFlight)
	var sending sync.WaitGroup
	defer sending.Wait()
	due := time.Now()
	for i := 0; sleepUntil(ctx, due); i++ {
		due = due.Add(interval)
		if late := time.Since(due); late > time.Second {
			due = due.Add(late) // what a stalled machine has not sent is left out
		}
		select {
		case inFlight <- struct{}{}:
		default:
			t.add(kind, "not sent")
			continue
		}
		r := p.request(kind, i, random)
		client := clients[i%len(clients)]
		sending.Go(func() {
			defer func() { <-inFlight }()
			answer, err := post(ctx, client, p.URL+r.path, r.form, r.id, r.secret, false)
			switch {
			case err == nil:
				t.add(kind, strconv.Itoa(answer.status))
			case ctx.Err() == nil: // the end of the attack cancels requests
				t.add(kind, "no answer")
			}
		})
	}
}

// request is one request of a flood.
type request struct {
	path, id, secret string
	form             url.Values
}

// request returns request number i of a flood. The choices do not follow i modulo a small number,
// because the address that a request comes from does.
func (p *plan) request(kind attackKind, i int, random *rand.Rand) request {
	half := random.IntN(2) == 0
	switch kind {
	case signIns:
		form := url.Values{"grant_type": {"password"}, "username": {attackUser}, "password": {p.Password}}
		if half {
			form.Set("username", fmt.Sprintf("user-%03d", random.IntN(names))) // those of good clients are among them
			form.Set("password", text(random))
		}
		return request{path: "/token", id: attackApp, form: form}
	case unknownClients:
		return request{path: "/token", id: "c-" + text(random), secret: text(random), form: url.Values{"grant_type": {"client_credentials"}}}
	case spentTokens:
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {p.Spent[i%len(p.Spent)]}}
		return request{path: "/token", id: attackApp, form: form}
	case introspections:
		token := p.Token
		if half {
			token = text(random)
		}
		return request{path: "/introspect", id: attackAPI, secret: p.Secret, form: url.Values{"token": {token}}}
	default: // randomTokens
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {text(random)}}
		return request{path: "/token", id: attackApp, form: form}
	}
}

// text returns a random string of the form and length of a refresh token.
func text(random *rand.Rand) string {
	return fmt.Sprintf("%016x%016x%011x", random.Uint64(), random.Uint64(), random.Uint64()>>20)
}
