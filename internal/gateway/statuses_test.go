package gateway_test

import (
	"io"
	"net/http"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

// TestOtherStatuses checks that an issued token counts, whatever the status.
func TestOtherStatuses(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   gateway.Outcome
	}{
		"created":           {201, `{"access_token":"a"}`, gateway.Issued},
		"an error with 200": {200, `{"error":"incorrect_client_credentials","error_description":"x"}`, gateway.Failed},
		"both":              {200, `{"error":"","access_token":"a"}`, gateway.Issued},
		"no JSON":           {200, `access_token=a`, gateway.Issued},
		"nothing":           {200, ``, gateway.Failed},
		"a page":            {200, `<!DOCTYPE html><p>We are back at noon.`, gateway.Failed},
		"no content":        {204, ``, gateway.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.upstream(func(rw http.ResponseWriter, _ *http.Request) {
				rw.WriteHeader(tc.status)
				_, _ = io.WriteString(rw, tc.body)
			})
			w.wantStatus("first", "grant_type=client_credentials", tc.status)
			check.Eventually(t, tc.want.String(), func() bool { return w.Stats().Requests[tc.want] == 1 })
			want := tc.status
			if tc.want == gateway.Issued {
				want = http.StatusTooManyRequests
			}
			w.wantStatus("second", "grant_type=client_credentials", want)
		})
	}
}
