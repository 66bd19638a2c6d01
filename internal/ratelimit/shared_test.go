package ratelimit

import (
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/fielderr"
)

// TestParseGrants refuses what no grant is, what is there twice, and none.
func TestParseGrants(t *testing.T) {
	for text, want := range map[string]string{
		"refresh_token":                "refresh_token",
		"password,authorization_code":  "authorization_code,password",
		"":                             "error: there is none",
		"client_credentials":           `error: "client_credentials" has no user`,
		"implicit":                     `error: "implicit" is none of authorization_code, refresh_token, password`,
		"refresh_token,refresh_token":  `error: "refresh_token" is there twice`,
		"refresh_token,Refresh_Token":  `error: "Refresh_Token" is none of`,
		"refresh_token, refresh_token": `error: " refresh_token" is none of`,
	} {
		var names []string
		if text != "" {
			names = strings.Split(text, ",")
		}
		g, err := ParseGrants(names)
		got := strings.Join(g.Names(), ",")
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, want) || want == "" {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestSharedListsAreValidated reports everything that cannot be, by its path.
func TestSharedListsAreValidated(t *testing.T) {
	p := Policy{
		User:   []Limit{forGrants(NewLimit("a", 10, time.Minute), GrantRefresh)},
		Client: []Limit{forGrants(NewLimit("b", 10, time.Minute), GrantRefresh)},
		Source: []Limit{NewLimit("a", 5, time.Minute), strictly(9, time.Minute), DefaultLimit(), forGrants(NewLimit("d", 5, time.Minute), GrantCode)},
		Total:  []Limit{NewLimit("strict", 50, time.Minute), NewLimit("e", 99, time.Minute)},
	}
	var got []string
	for _, e := range fielderr.Of(p.Validate()) {
		got = append(got, e.Path)
	}
	check.Equal(t, "paths", strings.Join(got, " "),
		"client[0].grants source[3].grants source[1].strict source[2].name source[0].name total[0].name total[0].requests total[1].requests")
	p.Source = make([]Limit, MaxShared+1)
	check.Equal(t, "too many", fielderr.Of(p.Validate())[1].Path, "source")
}
