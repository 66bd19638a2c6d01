package accounts

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/connect"
)

// late is a connection on which the response is always late.
type late struct{}

func (late) RoundTrip(*http.Request) (*http.Response, error) { return nil, context.DeadlineExceeded }

// TestRevocationThatOutlastsTheCaller: the server completes the revocation, and the error says so.
func TestRevocationThatOutlastsTheCaller(t *testing.T) {
	api := &adminclient.Client{
		Server: "http://127.0.0.1:1", HTTP: &http.Client{Transport: late{}}, Issuer: "https://issuer.example",
		Token: func(context.Context, string, string) (string, error) { return "good", nil },
	}
	n, err := end(t.Context(), api, userPath("ada", "/families"), connect.All)
	if n != 0 || err == nil || !strings.Contains(err.Error(), "the server continues") {
		t.Errorf("%d, %v", n, err)
	}
}
