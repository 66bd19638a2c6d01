package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

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
