package gateway_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
)

// TestUnknownUsersInTheLog checks that the log line of a request says if its user was unknown when
// the limits were checked. The simulator needs that.
func TestUnknownUsersInTheLog(t *testing.T) {
	opaque := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"access_token":"opaque"}`)) }
	for name, tt := range map[string]struct {
		form     string
		upstream http.HandlerFunc
		unknown  bool
	}{
		"a code whose answer shows none":     {"grant_type=authorization_code&code=c", opaque, true},
		"a code whose answer shows the user": {"grant_type=authorization_code&code=c", issues("ada", ""), false},
		"a code that is refused":             {"grant_type=authorization_code&code=c", fails, true},
		"a refresh token":                    {"grant_type=refresh_token&refresh_token=r", opaque, true},
		"a password":                         {"grant_type=password&username=ada&password=p", opaque, false},
		"no user":                            {"grant_type=client_credentials", opaque, false},
	} {
		t.Run(name, func(t *testing.T) {
			var log check.Buffer
			logged := func(o *gateway.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
			w := newWorld(t, 10, logged)
			w.upstream(tt.upstream)
			w.token(tt.form)
			check.Eventually(t, "there is a line", func() bool { return strings.Contains(log.String(), "msg=request") })
			check.Equal(t, log.String(), strings.Contains(log.String(), "user=unknown"), tt.unknown)
			var decided check.Buffer
			j := newDecider(t, func(o *gateway.Options) { o.Logger = slog.New(slog.NewTextHandler(&decided, nil)) })
			(&asked{body: "client_id=shop&" + tt.form}).send(j)
			check.Equal(t, "at a decider: "+decided.String(), strings.Contains(decided.String(), "user=unknown"), !strings.Contains(tt.form, "client_c") && !strings.Contains(tt.form, "username"))
		})
	}
}
