package gateway_test

import (
	"fmt"
	"net/http"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
	"oauth-server/internal/gateway/subject"
)

// TestUsernamesAtTwoClients checks that a username that is used at two clients leads to its user at
// both.
func TestUsernamesAtTwoClients(t *testing.T) {
	w := newWorld(t, 2)
	w.upstream(issues("0b5c", ""))
	for i, want := range []int{200, 200, 429} {
		for _, client := range []string{"shop", "app"} {
			got := w.send(http.MethodPost, tokenPath, "client_id="+client+"&grant_type=password&username=ada&password=p").status
			check.Equal(t, fmt.Sprint(client, i), got, want)
		}
	}
}

// TestOpaqueTokensOfPasswords checks that if no answer shows a user, the username is the user, also
// for the refresh tokens from its password.
func TestOpaqueTokensOfPasswords(t *testing.T) {
	const password, refresh = "grant_type=password&password=p&username=", "grant_type=refresh_token&refresh_token="
	for name, edit := range map[string]func(*gateway.Options){
		"by name": func(*gateway.Options) {}, "introspection fails": introspecting,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3, edit)
			for i, form := range []string{password + "ada", refresh + "r0", refresh + "r1"} {
				w.upstream(issuesOpaque(fmt.Sprint("r", i), fails))
				w.wantStatus(form, form, 200)
				check.Eventually(t, "the refresh token is known", func() bool { return w.Stats().Subjects > i })
			}
			for _, form := range []string{refresh + "r2", refresh + "r0", password + "ada"} {
				w.wantStatus(form, form, 429)
			}
			w.upstream(issuesOpaque("b", fails))
			w.wantStatus("another user", password+"bob", 200)
		})
	}
	t.Run("in another case", func(t *testing.T) {
		w := newWorld(t, 1)
		w.upstream(issuesOpaque("", nil))
		w.wantStatus("ada", password+"ada", 200)
		w.wantStatus("Ada", password+"Ada", 429)
	})
	t.Run("until the endpoint says who that is", func(t *testing.T) {
		w := newWorld(t, 2, introspecting)
		w.upstream(issuesOpaque("r0", fails))
		w.wantStatus("it fails", password+"ada", 200)
		w.wantUnknown(subject.IntrospectionFailed, 1)
		w.upstream(issuesOpaque("r1", says(userOf)))
		w.wantStatus("it answers", password+"ada", 200)
		check.OK(t, w.Stop(t.Context()))
		w.wantAsked(2)
	})
}
