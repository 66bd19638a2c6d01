package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
)

// operatedServer is a running server with two admin clients.
type operatedServer struct {
	*Server
	tb     testing.TB
	client *http.Client
	tokens map[string]string // of the clients ops and viewer
}

// shortest is the time that the server gives operators, except for profiles.
const shortest = 4 * time.Second

// startOperated runs a server until the test ends, which gives operators little time.
func startOperated(tb testing.TB, cfg *config.Config) *operatedServer {
	tb.Helper()
	secrets := map[string]string{}
	cfg.AdminListen = "127.0.0.1:0"
	o := &operatedServer{tb: tb, client: newClient(tb, nil), tokens: map[string]string{"": ""}}
	var err error
	o.Server, err = New(tb.Context(), cfg, Options{Prepare: func(ctx context.Context, store Store) (err error) {
		for id, grant := range map[string]func(*clientcfg.Client){"ops": clientcfg.MakeOperator, "viewer": clientcfg.MakeReader} {
			c := clientcfg.Client{ID: id}
			grant(&c)
			_, secret, failed := CreateClient(ctx, store, c, time.Now())
			secrets[id], err = secret, errors.Join(err, failed)
		}
		return err
	}})
	check.OK(tb, err)
	o.edge.ops.ReadTimeout, o.edge.ops.WriteTimeout = shortest, shortest
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	tb.Cleanup(func() {
		cancel()
		check.OK(tb, <-done)
	})
	for id, secret := range secrets {
		status, body := o.send(http.MethodPost, "/token", func(r *http.Request) { r.SetBasicAuth(id, secret) })
		var token struct {
			AccessToken string `json:"access_token"`
		}
		check.Equal(tb, "status of a token", status, http.StatusOK)
		check.OK(tb, json.Unmarshal([]byte(body), &token))
		o.tokens[id] = token.AccessToken
	}
	return o
}

// send sends a request to the admin address, and returns the status and the body of the answer.
func (o *operatedServer) send(method, path string, change func(*http.Request)) (status int, body string) {
	o.tb.Helper()
	form := strings.NewReader(url.Values{"grant_type": {"client_credentials"}}.Encode())
	req, err := http.NewRequestWithContext(o.tb.Context(), method, o.AdminURL()+path, form)
	check.OK(o.tb, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	change(req)
	res, err := o.client.Do(req)
	check.OK(o.tb, err)
	text, err := io.ReadAll(res.Body)
	check.OK(o.tb, errors.Join(err, res.Body.Close()))
	return res.StatusCode, string(text)
}

// get reads a path of the admin address with the token of a client, or without.
func (o *operatedServer) get(path, client string) (status int, body string) {
	o.tb.Helper()
	return o.send(http.MethodGet, path, func(r *http.Request) {
		if token := o.tokens[client]; token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		r.Body, r.ContentLength = http.NoBody, 0
	})
}

func TestProfiles(t *testing.T) {
	cfg := testConfig(t)
	cfg.AdminProfiles = true
	o := startOperated(t, cfg)
	const gzip, goTrace = "\x1f\x8b", "go 1."
	for _, tt := range []struct {
		path, client string
		status       int
		begins       string
	}{
		{"profile?seconds=5", "ops", http.StatusOK, gzip},
		{"trace?seconds=1", "ops", http.StatusOK, goTrace},
		{"heap", "ops", http.StatusOK, gzip},
		{"allocs?debug=1", "ops", http.StatusOK, "heap profile: "},
		{"goroutine?debug=2", "ops", http.StatusOK, "goroutine "},
		{"heap?debug=0", "ops", http.StatusOK, gzip},
		{"heap?debug=3", "ops", http.StatusUnprocessableEntity, `{"type":"urn:oauth-server:problem:`},
		{"profile?seconds=61", "ops", http.StatusUnprocessableEntity, `{"type":"urn:oauth-server:problem:`},
		{"profile?seconds=x", "ops", http.StatusUnprocessableEntity, `{"type":"urn:oauth-server:problem:`},
		{"heap?seconds=1", "ops", http.StatusUnprocessableEntity, `{"type":"urn:oauth-server:problem:`},
		{"cmdline", "ops", http.StatusNotFound, `{"type":"urn:oauth-server:problem:`},
		{"", "ops", http.StatusNotFound, `{"type":"urn:oauth-server:problem:`},
		{"heap", "viewer", http.StatusForbidden, `{"type":"urn:oauth-server:problem:`},
		{"heap", "", http.StatusUnauthorized, `{"type":"urn:oauth-server:problem:`},
	} {
		began := time.Now()
		status, body := o.get("/debug/pprof/"+tt.path, tt.client)
		if _, seconds, recorded := strings.Cut(tt.path, "?seconds="); recorded && status == http.StatusOK {
			n, err := strconv.Atoi(seconds)
			check.OK(t, err)
			if time.Since(began) < time.Duration(n)*time.Second {
				t.Errorf("%s ended early", tt.path)
			}
		}
		check.Equal(t, "status of "+tt.path+" for "+tt.client, status, tt.status)
		check.Equal(t, "body of "+tt.path, body[:min(len(body), len(tt.begins))], tt.begins)
	}
}

// One profile is recorded at a time. It ends when its reader disconnects.
func TestOneProfileAtATime(t *testing.T) {
	cfg := testConfig(t)
	cfg.AdminProfiles = true
	o := startOperated(t, cfg)
	ctx, hangUp := context.WithCancel(t.Context())
	first := make(chan struct{})
	go func() {
		defer close(first)
		for ctx.Err() == nil { // again while another one is recorded
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.AdminURL()+"/debug/pprof/profile?seconds=60", http.NoBody)
			check.OK(t, err)
			req.Header.Set("Authorization", "Bearer "+o.tokens["ops"])
			if res, err := o.client.Do(req); err == nil {
				check.Equal(t, "status", res.StatusCode, http.StatusConflict)
				check.OK(t, res.Body.Close())
			}
		}
	}()
	becomes := func(want int) {
		t.Helper()
		check.Eventually(t, "another one", func() bool {
			status, _ := o.get("/debug/pprof/trace?seconds=1", "ops")
			return status == want
		})
	}
	becomes(http.StatusConflict)
	hangUp()
	<-first
	becomes(http.StatusOK)
}

// A stop ends the profile that is being recorded. Its reader gets the part up to then.
func TestStopEndsTheProfile(t *testing.T) {
	cfg := testConfig(t)
	cfg.AdminProfiles = true
	o := startOperated(t, cfg)
	type answer struct {
		status int
		body   string
	}
	read := make(chan answer, 1)
	began := time.Now()
	go func() {
		got := answer{status: http.StatusConflict}
		for got.status == http.StatusConflict { // while another one is recorded
			got.status, got.body = o.get("/debug/pprof/profile?seconds=60", "ops")
		}
		read <- got
	}()
	check.Eventually(t, "the recording", func() bool {
		status, _ := o.get("/debug/pprof/trace?seconds=1", "ops")
		return status == http.StatusConflict
	})
	check.OK(t, o.edge.ops.Shutdown(t.Context()))
	got := <-read
	check.Equal(t, "status", got.status, http.StatusOK)
	check.Equal(t, "complete", strings.HasPrefix(got.body, "\x1f\x8b"), true)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the profile ended after %v", took)
	}
}

// While profiles are off, which is the default, their paths are as unknown as any other.
func TestProfilesAreOff(t *testing.T) {
	upstream := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(upstream.Close)
	gateway := testConfig(t)
	gateway.Gateway.Upstream, gateway.Gateway.TokenPath = upstream.URL, []string{"/token"}
	for name, cfg := range map[string]*config.Config{"server": testConfig(t), "gateway": gateway} {
		t.Run(name, func(t *testing.T) {
			o := startOperated(t, cfg)
			for _, client := range []string{"ops", ""} {
				unknown, said := o.get("/debug/unknown", client)
				check.Equal(t, "unknown path", unknown, http.StatusNotFound)
				for _, path := range []string{"", "/", "/heap", "/profile?seconds=1"} {
					status, body := o.get("/debug/pprof"+path, client)
					check.Equal(t, "status of "+path, status, http.StatusNotFound)
					check.Equal(t, "body of "+path, body, said)
				}
			}
		})
	}
}
