package gateway_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

// TestAnswersPassUnchanged checks that answers pass unchanged, whether or not the gateway can read
// them.
func TestAnswersPassUnchanged(t *testing.T) {
	huge := `{"access_token":"` + strings.Repeat("x", 2<<20) + `"}`
	for name, body := range map[string]string{
		"opaque": `{"access_token":"opaque", "token_type":"Bearer"}`, "no JSON": "access_token=x", "huge": huge,
		"an id_token that is no JWT":  `{"access_token":"a","id_token":"x.y"}`,
		"a claim that is there twice": `{"access_token":"` + strings.Replace(jwt("ada"), jwtPart(`{"sub":"ada"}`), jwtPart(`{"sub":"ada","sub":"bob"}`), 1) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.upstream(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("X-Of-The-Upstream", "kept")
				rw.Header().Set("Content-Type", "application/json;charset=UTF-8")
				_, _ = io.WriteString(rw, body)
			})
			got := w.token("grant_type=client_credentials")
			check.Equal(t, "status", got.status, 200)
			check.Equal(t, "body", got.body == body, true)
			check.Equal(t, "header", got.header.Get("X-Of-The-Upstream"), "kept")
			check.Equal(t, "Content-Type", got.header.Get("Content-Type"), "application/json;charset=UTF-8")
			check.Equal(t, "RateLimit-Policy", got.header.Get("RateLimit-Policy"), `"user";q=1;w=60`)
			w.wantStatus("it counts", "grant_type=client_credentials", 429)
		})
	}
}

// TestCompressedAnswers checks that the gateway does not request compression, and that a compressed
// answer still passes.
func TestCompressedAnswers(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Content-Encoding", "gzip")
		rw.Header().Set("Asked", r.Header.Get("Accept-Encoding"))
		z := gzip.NewWriter(rw)
		_, _ = io.WriteString(z, `{"access_token":"`+jwt("ada")+`"}`)
		_ = z.Close()
	})
	got := w.token("grant_type=authorization_code&code=c") // net/http decompresses its body
	check.Equal(t, "status", got.status, 200)
	check.Equal(t, "asked", got.header.Get("Asked"), "")
	check.Equal(t, "body", strings.Contains(got.body, "access_token"), true)
	unknown := uint64(0)
	for _, n := range w.Stats().Unknown {
		unknown += n
	}
	check.Equal(t, "tokens of no user", unknown, 1)
}

// TestOwnRateLimitFields checks that the upstream's own RateLimit fields are kept.
func TestOwnRateLimitFields(t *testing.T) {
	w := newWorld(t, 5)
	w.upstream(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("RateLimit", `"theirs";r=1`)
		issues("shop", "")(rw, r)
	})
	got := w.token("grant_type=client_credentials")
	check.Equal(t, "RateLimit", strings.Join(got.header.Values("RateLimit"), ","), `"theirs";r=1`)
	check.Equal(t, "RateLimit-Policy", got.header.Get("RateLimit-Policy"), "")
}

// TestSlowUpstream checks that a slow upstream causes a 504 and that nothing counts.
func TestSlowUpstream(t *testing.T) {
	end := make(chan struct{})
	w := newWorld(t, 1, func(o *gateway.Options) {
		o.AnswerWithin = 10 * time.Millisecond
	})
	w.upstream(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-end:
		case <-r.Context().Done():
		}
	})
	got := w.token("grant_type=client_credentials")
	close(end)
	check.Equal(t, "status", got.status, 504)
	check.Equal(t, "error", strings.Contains(got.body, "temporarily_unavailable"), true)
	w.upstream(issues("shop", "")) // a slow machine may take too long for this, too
	check.Eventually(t, "again", func() bool { return w.token("grant_type=client_credentials").status == http.StatusOK })
}

// TestFraming checks that an ambiguously framed request never reaches the upstream as sent.
func TestFraming(t *testing.T) {
	const form = "client_id=shop&grant_type=client_credentials"
	for name, tc := range map[string]struct {
		fields string
		body   string
		status int
		bodies string // received by the upstream
	}{
		"two lengths":           {fmt.Sprintf("Content-Length: %d\r\nContent-Length: 1\r\n", len(form)), form, 400, ""},
		"the same length twice": {fmt.Sprintf("Content-Length: %d\r\nContent-Length: %[1]d\r\n", len(form)), form, 200, form},
		"chunked and a length":  {"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(form), form), 200, form},
		"another coding":        {"Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n", 501, ""},
		"a length below zero":   {"Content-Length: -1\r\n", form, 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 5)
			w.upstream(issues("shop", ""))
			status := w.raw("POST " + tokenPath + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: " + formType + "\r\n" + tc.fields + "\r\n" + tc.body)
			check.Equal(t, "status", status, tc.status)
			var bodies []string
			for _, came := range w.came {
				bodies = append(bodies, strings.SplitN(came, " ", 3)[2])
			}
			check.Equal(t, "bodies at the upstream", strings.Join(bodies, "|"), tc.bodies)
		})
	}
}

// TestJSONBodies checks JSON bodies, which some upstreams accept.
func TestJSONBodies(t *testing.T) {
	w := newWorld(t, 1)
	w.upstream(issues("ada", ""))
	body := `{"grant_type":"password", "client_id":"shop", "username":"ada", "password":"p"}`
	for _, want := range []int{200, 429} {
		got := w.do(http.MethodPost, tokenPath, strings.NewReader(body), map[string]string{"Content-Type": "application/json"})
		check.Equal(t, "status", got.status, want)
	}
	check.Equal(t, "at the upstream", strings.Join(w.came, "|"), "POST "+tokenPath+" "+body)
}
