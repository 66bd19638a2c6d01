package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/lab/load"
	"oauth-server/lab/servers"
	"oauth-server/lab/traffic"
)

// goodClients returns the good clients. Every other one refreshes the tokens of a user, the others use
// client_credentials.
func goodClients() []traffic.Client {
	all := make([]traffic.Client, goodCount)
	for i := range all {
		all[i] = traffic.Client{ID: fmt.Sprintf("good-%03d", i), Grant: clientcfg.ClientCredentials}
		if i%2 == 1 {
			all[i].Grant = clientcfg.RefreshToken
			all[i].Users = []string{fmt.Sprintf("user-%03d", i)}
		}
	}
	return all
}

// measurement is one request of a good client.
type measurement struct {
	phase   int
	grant   clientcfg.Grant
	outcome string // the HTTP status, or "no answer"
	took    time.Duration
}

func (m *measurement) succeeded() bool { return m.outcome == "200" }

// crowd is the good clients.
type crowd struct {
	url         string // of the server
	credentials traffic.Credentials
	phase       atomic.Int32

	mu       sync.Mutex
	measured []measurement
}

// goodClient is one of them.
type goodClient struct {
	traffic.Client
	*crowd
	http  *http.Client
	sent  int
	token string // the refresh token
}

const (
	answerTimeout = 10 * time.Second
	goodInterval  = time.Second / goodRate // between two requests of one client
	// freshConnectionEvery makes a client connect anew at times, so that connecting is measured too.
	freshConnectionEvery = 10
)

// signedIn returns the clients, each with a connection of its own and a refresh token if it
// needs one.
func (c *crowd) signedIn(ctx context.Context) (all []*goodClient, err error) {
	for _, client := range goodClients() {
		g := &goodClient{Client: client, crowd: c}
		g.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: answerTimeout}
		all = append(all, g)
		if client.Grant != clientcfg.RefreshToken {
			continue
		}
		if outcome := g.send(ctx); outcome != "200" {
			return nil, fmt.Errorf("sign in %s: %s", client.Users[0], outcome)
		}
	}
	return all, nil
}

// run sends the requests of all clients, evenly spread, until ctx ends.
func (c *crowd) run(ctx context.Context, clients []*goodClient) {
	start := time.Now()
	var sending sync.WaitGroup
	for i, client := range clients {
		first := start.Add(goodInterval * time.Duration(i) / time.Duration(len(clients)))
		sending.Go(func() { client.run(ctx, first) })
	}
	sending.Wait()
}

// run sends a request at each interval. If one takes longer than the interval, the next is sent
// late, and its latency counts from when it was due: a slow server does not hide requests.
func (g *goodClient) run(ctx context.Context, due time.Time) {
	defer g.http.CloseIdleConnections()
	free := time.Now()
	for ; ; due = due.Add(goodInterval) {
		if !sleepUntil(ctx, due) {
			return
		}
		from := time.Now()
		if free.After(due) {
			from = due
		}
		m := measurement{phase: int(g.phase.Load()), grant: g.Grant}
		m.outcome = g.send(ctx)
		free = time.Now()
		m.took = free.Sub(from)
		if ctx.Err() != nil {
			return
		}
		g.mu.Lock()
		g.measured = append(g.measured, m)
		g.mu.Unlock()
	}
}

// sleepUntil returns false if ctx ended first.
func sleepUntil(ctx context.Context, t time.Time) bool {
	return servers.Pause(ctx, time.Until(t)) == nil
}

// send sends one token request. After invalid_grant the next one signs in.
func (g *goodClient) send(ctx context.Context) (outcome string) {
	form := servers.Own()
	if g.Grant == clientcfg.RefreshToken {
		form = refreshForm(g.token)
		if g.token == "" {
			form = servers.SignIn(g.Users[0], g.credentials.Passwords[g.Users[0]])
		}
	}
	if g.sent++; g.sent%freshConnectionEvery == 0 {
		g.http.CloseIdleConnections()
	}
	answer, err := load.Post(ctx, g.http, g.url+"/token", g.ID, g.credentials.Secrets[g.ID], form)
	if err != nil {
		return "no answer"
	}
	if answer.RefreshToken != "" || answer.Error == "invalid_grant" {
		g.token = answer.RefreshToken
	}
	return strconv.Itoa(answer.Status)
}
