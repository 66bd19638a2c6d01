package grants_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

func TestBearer(t *testing.T) {
	w := newWorld(t)
	tokens := w.tokens("shop")
	claims, err := w.service.Bearer(t.Context(), tokens.AccessToken)
	require.NoError(t, err)
	require.Equal(t, "shop", claims.ClientID)
	require.Equal(t, "alice", claims.Subject)
	for name, bad := range map[string]string{
		"empty": "", "nonsense": "a.b.c", "a refresh token": tokens.RefreshToken,
		"forged": tokens.AccessToken[:len(tokens.AccessToken)-4] + "AAAA",
	} {
		_, err := w.service.Bearer(t.Context(), bad)
		require.ErrorIs(t, err, grants.ErrBearer, name)
	}
}

func TestBearerEndsWithWhatItRestsOn(t *testing.T) {
	for name, end := range map[string]func(*world, grants.TokenResponse){
		"time": func(w *world, _ grants.TokenResponse) { w.clock.advance(time.Hour) },
		"revocation": func(w *world, r grants.TokenResponse) {
			q := grants.TokenQuery{Credentials: w.credentials("shop"), Token: r.AccessToken}
			require.NoError(t, w.service.Revoke(t.Context(), q))
		},
		"its user": func(w *world, _ grants.TokenResponse) { require.NoError(t, w.store.DeleteUser(t.Context(), "alice")) },
		"its client": func(w *world, _ grants.TokenResponse) {
			w.clients = map[string]*clientcfg.Client{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tokens := w.tokens("shop")
			end(w, tokens)
			_, err := w.service.Bearer(t.Context(), tokens.AccessToken)
			require.ErrorIs(t, err, grants.ErrBearer)
		})
	}
}
