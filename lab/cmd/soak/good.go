package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/lab/traffic"
)

// goodClients returns n clients; every other one refreshes the tokens of a user, the others use
// client_credentials.
func goodClients(n int) []traffic.Client {
	all := make([]traffic.Client, n)
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
	url         string
	interval    time.Duration // between two requests of one client
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
	// freshConnectionEvery makes a client connect anew at times, so that connecting is measured too.
	freshConnectionEvery = 10
)

// signedIn returns the clients, each with a connection of its own and a refresh token if it
// needs one.
func (c *crowd) signedIn(ctx context.Context, n int) ([]*goodClient, error) {
	all := make([]*goodClient, n)
	for i, client := range goodClients(n) {
		g := &goodClient{Client: client, crowd: c}
		g.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: answerTimeout}
		all[i] = g
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
		first := start.Add(c.interval * time.Duration(i) / time.Duration(len(clients)))
		sending.Go(func() { client.run(ctx, first) })
	}
	sending.Wait()
}

// run sends a request at each interval. If one takes longer than the interval, the next is sent
// late, and its latency counts from when it was due: a slow server does not hide requests.
func (g *goodClient) run(ctx context.Context, due time.Time) {
	defer g.http.CloseIdleConnections()
	free := time.Now()
	for ; ; due = due.Add(g.interval) {
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
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// send sends one token request. After invalid_grant the next one signs in.
func (g *goodClient) send(ctx context.Context) (outcome string) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if g.Grant == clientcfg.RefreshToken {
		form = url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.token}}
		if g.token == "" {
			form = url.Values{"grant_type": {"password"}, "username": {g.Users[0]}, "password": {g.credentials.Passwords[g.Users[0]]}}
		}
	}
	g.sent++
	answer, err := post(ctx, g.http, g.url+"/token", form, g.ID, g.credentials.Secrets[g.ID], g.sent%freshConnectionEvery == 0)
	if err != nil {
		return "no answer"
	}
	if answer.RefreshToken != "" || answer.Error == "invalid_grant" {
		g.token = answer.RefreshToken
	}
	return strconv.Itoa(answer.status)
}

// tokenAnswer is what is read of an answer.
type tokenAnswer struct {
	status       int
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	Error        string `json:"error"`
}

// maxAnswer is the number of bytes of an answer that are read.
const maxAnswer = 64 << 10

// post sends a form, with the client's secret, or with its client_id only if that is empty.
func post(ctx context.Context, client *http.Client, to string, form url.Values, id, secret string, last bool) (answer tokenAnswer, err error) {
	if secret == "" {
		form.Set("client_id", id)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return answer, err
	}
	if secret != "" {
		req.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Close = last
	res, err := client.Do(req)
	if err != nil {
		return answer, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return answer, err
	}
	answer.status = res.StatusCode
	_ = json.Unmarshal(body, &answer) // an answer without JSON has a status
	return answer, nil
}
