package tokenlimit_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/tokenlimit"
)

// TestStrangersLockOutNobody checks that requests with wrong secrets take no room from others, and
// that requests refused for another reason are not guesses. Both are denied when too many of them
// are in progress.
func TestStrangersLockOutNobody(t *testing.T) {
	w := newWorld(t, tokenlimit.Options{Default: tokenlimit.Policy{Client: perHour(5)}})
	w.endpoint = func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, `{"error":"invalid_grant"}`)
	}
	for range 6 {
		w.want("grant_type=refresh_token&refresh_token=gone", 400)
	}
	w.endpoint = func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(rw, `{"error":"invalid_client"}`)
	}
	w.want("grant_type=client_credentials&client_secret=wrong", 401)
	var nest func(n int)
	w.endpoint = func(rw http.ResponseWriter, _ *http.Request) {
		if n := len(w.bodies) - 7; n < 5 { // while all earlier ones are in progress
			nest(n)
		}
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(rw, `{"error":"invalid_client"}`)
	}
	nest = func(n int) { w.want(fmt.Sprint("grant_type=client_credentials&client_secret=wrong&n=", n), 401) }
	over := w.endpoint
	w.endpoint = func(rw http.ResponseWriter, r *http.Request) {
		if len(w.bodies) == 7+5 {
			w.want("grant_type=client_credentials&client_secret=wrong", 429)
			check.Equal(t, "outcome", w.last().Outcome, tokenlimit.Denied)
			under := w.endpoint
			w.endpoint = opaque
			for _, want := range []int{200, 200, 200, 200, 200, 429} {
				w.want("grant_type=client_credentials&client_secret=right", want)
			}
			w.endpoint = under
		}
		over(rw, r)
	}
	nest(0)
}
