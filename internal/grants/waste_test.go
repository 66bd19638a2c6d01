package grants_test

import (
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

// issuedTokens collects the values passed to Options.Issued.
func issuedTokens(t *testing.T, edits ...func(*grants.Options)) (*world, *[]grants.Issued) {
	t.Helper()
	var seen []grants.Issued
	return newWorld(t, append(edits, func(o *grants.Options) {
		o.Issued = func(i grants.Issued) { seen = append(seen, i) }
	})...), &seen
}

// TestWaste: a token is wasted while an equal one has more than half of its lifetime left.
func TestWaste(t *testing.T) {
	w, seen := issuedTokens(t)
	asks := func(want bool, id string, req grants.TokenRequest) {
		t.Helper()
		*seen = nil
		w.mustToken(id, req)
		check.Equal(t, "issued", *seen, []grants.Issued{{ClientID: id, Grant: clientcfg.Grant(req.GrantType), Wasted: want}})
	}
	asks(false, "shop", scoped("read write"))
	asks(true, "shop", scoped("write read"))
	asks(false, "shop", scoped("read"))
	asks(false, "other", scoped("read write"))
	ada := grants.TokenRequest{GrantType: "password", Username: "alice", Password: password, Scope: "read"}
	asks(false, "shop", ada)
	asks(true, "shop", ada)
	ada.Username = "bob"
	asks(false, "shop", ada)
	asks(false, "daemon", scoped("read"))
	w.revokeClient("daemon")
	asks(false, "daemon", scoped("read"))
	w.clock.Advance(29 * time.Minute)
	asks(true, "shop", scoped("read write")) // starts over
	w.clock.Advance(30 * time.Minute)
	asks(false, "shop", scoped("read write"))
}

// TestWasteByRefreshing: an early refresh is compared with the token issued together with the
// refresh token.
func TestWasteByRefreshing(t *testing.T) {
	w, seen := issuedTokens(t)
	tokens := w.tokens("shop")
	refresh := func(want bool, scope string) {
		t.Helper()
		*seen = nil
		req := refreshing(tokens.RefreshToken)
		req.Scope = scope
		tokens = w.mustToken("shop", req)
		check.Equal(t, "issued", *seen, []grants.Issued{{ClientID: "shop", Grant: clientcfg.RefreshToken, Wasted: want}})
	}
	w.clock.Advance(29 * time.Minute)
	refresh(true, "")
	w.clock.Advance(30 * time.Minute)
	refresh(false, "")
	refresh(false, "read") // different from the last token
}

// TestWasteIsMeasuredOfWhatIsIssued: a token that is handed out again is not counted as issued.
func TestWasteIsMeasuredOfWhatIsIssued(t *testing.T) {
	w, _ := reuseWorld(t)
	var n int
	w.reopen(func(o *grants.Options) { o.Issued = func(grants.Issued) { n++ } })
	w.exhausted(clientCredentials)
	w.mustToken("shop", clientCredentials)
	check.Equal(t, "issued", n, 2)
}
