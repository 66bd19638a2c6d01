package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
)

// operatedServer is a running server with two admin clients, ops and viewer.
type operatedServer struct {
	running
	tb     testing.TB
	client *http.Client
	tokens map[string]string // by client
}

// startOperated runs a server until the test ends, which gives operators 4 s, except for profiles.
func startOperated(tb testing.TB, cfg *config.Config) *operatedServer {
	tb.Helper()
	secrets := map[string]string{}
	cfg.AdminListen = "127.0.0.1:0"
	o := &operatedServer{tb: tb, client: newClient(tb, nil), tokens: map[string]string{}}
	o.run(tb, cfg, io.Discard, func(ctx context.Context, store Store) (err error) {
		for id, grant := range map[string]func(*clientcfg.Client){"ops": clientcfg.MakeOperator, "viewer": clientcfg.MakeReader} {
			c := clientcfg.Client{ID: id}
			grant(&c)
			_, secret, failed := CreateClient(ctx, store, c, time.Now())
			secrets[id], err = secret, errors.Join(err, failed)
		}
		return err
	}, func(s *Server) { s.edge.ops.ReadTimeout, s.edge.ops.WriteTimeout = 4*time.Second, 4*time.Second })
	for id, secret := range secrets {
		o.tokens[id] = tokenOf(tb, o.client, o.AdminURL(), id, secret).token(tb)
	}
	return o
}

// get reads a path of the admin address with the token of a client, or without.
func (o *operatedServer) get(path, client string) (status int, body string) {
	o.tb.Helper()
	got := send(o.tb, o.client, http.MethodGet, o.AdminURL()+path, "", func(r *http.Request) {
		if token := o.tokens[client]; token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
	})
	return got.StatusCode, got.body
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
