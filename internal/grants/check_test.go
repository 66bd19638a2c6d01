package grants_test

import (
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// wantCode fails the test unless err is an OAuth error with that code and a description that is
// valid as error_description.
func wantCode(tb testing.TB, want oautherr.Code, err error) {
	tb.Helper()
	failed := check.As[*grants.Error](tb, err)
	if failed.Code != want {
		tb.Fatalf("error %v, want the code %s", err, want)
	}
	for _, r := range failed.Description { // RFC 6749 5.2
		if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
			tb.Fatalf("%q in the description %q", r, failed.Description)
		}
	}
}
