package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
)

// asOperator sends a request to the admin API.
func asOperator(t *testing.T, method, address, token, body string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+"/admin/v1/settings", strings.NewReader(body))
	check.OK(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/merge-patch+json")
		req.Header.Set("If-Match", "*")
	}
	return send(t, newHTTPClient(t), req)
}

// TestOnlyOperatorsUseTheAdminAPI: any user can sign in through an admin client that is registered for
// that, with a secret or without, and gets a token with its audience and scopes. The admin API asks who it
// is, and the secret alone gets no token.
func TestOnlyOperatorsUseTheAdminAPI(t *testing.T) {
	admin := testworld.FreeAddress(t)
	s := start(t, unlimited+"admin_listen: "+admin+"\n")
	tokens := map[string]string{}
	for _, id := range []string{"console", "desk"} {
		c := s.config(id)
		c.Scopes = []string{"ratelimit:write"}
		code, verifier := s.code(newBrowser(t), c)
		token, err := c.Exchange(with(t), code, oauth2.VerifierOption(verifier))
		check.OK(t, err)
		check.Equal(t, "scope", token.Extra("scope"), any("ratelimit:write"))
		tokens[id] = token.AccessToken
	}
	var refused *oauth2.RetrieveError
	if token, err := s.credentials("console").Token(with(t)); !errors.As(err, &refused) || refused.ErrorCode != "unauthorized_client" {
		t.Errorf("with the secret alone: %v, %v", token, err)
	}

	for _, tt := range []struct {
		level       string // of the user from now on
		read, write int
	}{{"", 403, 403}, {"read", 200, 403}, {"on", 200, 200}, {"off", 403, 403}} {
		if tt.level != "" {
			check.Equal(t, "exit status", s.stop(), 0)
			_, err := command(t.Context(), "", "user", "operator", user, tt.level, "--data", s.data())
			check.OK(t, err)
			s.up()
		}
		for id, token := range tokens {
			asOperator(t, http.MethodGet, admin, token, "").requireStatus(t, tt.read)
			asOperator(t, http.MethodPatch, admin, token, `{"canary_percent":50}`).requireStatus(t, tt.write)
			if tt.write == http.StatusOK {
				requireAudited(t, admin, token, id, user)
			}
		}
	}
}

// requireAudited fails the test unless the newest change is that of the user, through the client.
func requireAudited(t *testing.T, admin, token, client, name string) {
	t.Helper()
	out, err := command(t.Context(), "", "limits", "audit", "--limit", "1", "--server", "http://"+admin, "--token", token, "-o", "json")
	check.OK(t, err)
	var trail struct {
		Entries []struct {
			Actor struct {
				ClientID string `json:"client_id"`
				Username string
			}
		}
	}
	check.OK(t, json.Unmarshal(out, &trail))
	if len(trail.Entries) != 1 || trail.Entries[0].Actor.ClientID != client || trail.Entries[0].Actor.Username != name {
		t.Errorf("the audit trail: %s", out)
	}
}

// TestTwoSecretsDuringARotation: the old secret works beside the new one for as long as was said, and
// the last use of each is shown, after a restart too.
func TestTwoSecretsDuringARotation(t *testing.T) {
	s := start(t, unlimited)
	check.Equal(t, "exit status", s.stop(), 0)
	type shown struct {
		Secret string    `json:"client_secret"`
		Until  time.Time `json:"former_secret_valid_until"`
		Used   time.Time `json:"secret_used_at"`
		Former struct {
			Until time.Time `json:"valid_until"`
			Used  time.Time `json:"used_at"`
		} `json:"former_secret"`
	}
	client := func(args ...string) (c shown) {
		t.Helper()
		out, err := command(t.Context(), "", append(append([]string{"client"}, args...), "--data", s.data(), "-o", "json")...)
		check.OK(t, err)
		check.OK(t, json.Unmarshal(out, &c))
		return c
	}
	status := func(secret string) int {
		t.Helper()
		return s.from("127.0.0.1", "/token", "shop", secret, url.Values{"grant_type": {"client_credentials"}}).status
	}
	rotated := client("rotate-secret", "shop", "--overlap", "1h")
	if left := time.Until(rotated.Until); left < 50*time.Minute || left > time.Hour {
		t.Errorf("the old secret stays valid until %v", rotated.Until)
	}
	if c := client("show", "shop"); !c.Used.IsZero() || !c.Former.Used.IsZero() || !c.Former.Until.Equal(rotated.Until) {
		t.Errorf("before any use: %+v", c)
	}
	s.up()
	for secret, want := range map[string]int{rotated.Secret: http.StatusOK, secrets["shop"]: http.StatusOK, "x": http.StatusUnauthorized} {
		check.Equal(t, "status", status(secret), want)
	}
	check.Equal(t, "exit status", s.stop(), 0)
	c := client("show", "shop")
	for _, used := range []time.Time{c.Used, c.Former.Used} {
		if ago := time.Since(used); ago < 0 || ago > startTimeout+2*time.Minute {
			t.Errorf("last used %v", used)
		}
	}

	again := client("rotate-secret", "shop") // which ends the overlap
	s.up()
	check.Equal(t, "status", status(again.Secret), http.StatusOK)
	for _, old := range []string{rotated.Secret, secrets["shop"]} {
		check.Equal(t, "status", status(old), http.StatusUnauthorized)
	}
	check.Equal(t, "exit status", s.stop(), 0)
	if c := client("show", "shop"); !c.Former.Until.IsZero() || c.Used.IsZero() {
		t.Errorf("after the second rotation: %+v", c)
	}
}
