package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/grants"
)

func TestBearer(t *testing.T) {
	w := newWorld(t)
	tokens := w.tokens("shop")
	claims, err := w.service.Bearer(t.Context(), tokens.AccessToken)
	check.OK(t, err)
	check.Equal(t, "claims.ClientID", claims.ClientID, "shop")
	check.Equal(t, "claims.Subject", claims.Subject, "alice")
	for name, bad := range map[string]string{
		"empty": "", "nonsense": "a.b.c", "a refresh token": tokens.RefreshToken,
		"forged": tokens.AccessToken[:len(tokens.AccessToken)-4] + "AAAA",
	} {
		_, err = w.service.Bearer(t.Context(), bad)
		check.ErrorIs(t, err, grants.ErrBearer, name)
	}
}

func TestBearerEndsWithWhatItRestsOn(t *testing.T) {
	for name, end := range map[string]func(*world, grants.TokenResponse){
		"time": func(w *world, _ grants.TokenResponse) { w.clock.Advance(time.Hour) },
		"revocation": func(w *world, r grants.TokenResponse) {
			q := grants.TokenQuery{Credentials: w.credentials("shop"), Token: r.AccessToken}
			check.OK(t, w.service.Revoke(t.Context(), q))
		},
		"its user": func(w *world, _ grants.TokenResponse) { check.OK(t, w.store.DeleteUser(t.Context(), "alice", nil)) },
		"its client": func(w *world, _ grants.TokenResponse) {
			clear(w.clients)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tokens := w.tokens("shop")
			end(w, tokens)
			_, err := w.service.Bearer(t.Context(), tokens.AccessToken)
			check.ErrorIs(t, err, grants.ErrBearer)
		})
	}
}
