package ratelimit

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/strict/fielderr"
)

// TestParseGrants: unknown names, duplicates and empty lists are refused.
func TestParseGrants(t *testing.T) {
	for text, want := range map[string]string{
		"refresh_token":                "refresh_token",
		"password,authorization_code":  "authorization_code,password",
		"":                             "error: must not be empty",
		"client_credentials":           `error: [0]: "client_credentials" has no user: limit it in the list client`,
		"implicit":                     `error: [0]: "implicit" is not one of authorization_code, refresh_token, password`,
		"refresh_token,refresh_token":  `error: [1]: "refresh_token" is a duplicate`,
		"refresh_token,Refresh_Token":  `error: [1]: "Refresh_Token" is not one of`,
		"refresh_token, refresh_token": `error: [1]: " refresh_token" is not one of`,
		"password,password,x":          "error: [1]: \"password\" is a duplicate\n[2]: \"x\" is not one of authorization_code, refresh_token, password",
		"urn:openid:params:grant-type:ciba,urn:ietf:params:oauth:grant-type:token-exchange": "urn:ietf:params:oauth:grant-type:token-exchange,urn:openid:params:grant-type:ciba",
		"token-exchange": `error: [0]: "token-exchange" is not one of`,
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

// TestSharedListsAreValidated: every problem is reported with its path.
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
}

// TestItemsOfTooManyLimitsAreValidated: besides their number, the items of a list that is too long
// are validated, and other lists too. The number of problems stays bounded.
func TestItemsOfTooManyLimitsAreValidated(t *testing.T) {
	many := func(n int, broken ...int) (list []Limit) {
		for i := range n {
			list = append(list, NewLimit("l"+strconv.Itoa(n)+"-"+strconv.Itoa(i), 10, time.Minute))
		}
		for _, i := range broken {
			list[i].Window = 0
		}
		return list
	}
	p := Policy{User: many(MaxLimits+1, 2), Client: many(1000, 3, 999), Source: many(MaxShared+1, 4), Total: many(1, 0)}
	var got []string
	for _, e := range fielderr.Of(p.Validate()) {
		got = append(got, e.Path)
	}
	check.Equal(t, "paths", strings.Join(got, " "), "user user[2].window client client[3].window source source[4].window total[0].window")
}

// TestGrantOf: only an unknown grant, or one without a user, is counted by every limit.
func TestGrantOf(t *testing.T) {
	for name, want := range map[string]struct{ refreshes, exchanges, all bool }{
		"":                   {true, true, true},
		"client_credentials": {true, true, true},
		"refresh_token":      {true, false, true},
		"authorization_code": {false, false, true},
		"urn:ietf:params:oauth:grant-type:token-exchange": {false, true, true},
		"urn:ietf:params:oauth:grant-type:device_code":    {false, false, true},
		"urn:openid:params:grant-type:ciba":               {false, false, true},
		"urn:x":                                           {false, false, true},
		"-":                                               {false, false, true},
	} {
		of := GrantOf(name)
		got := []bool{GrantRefresh.Count(of), GrantExchange.Count(of), Grants(0).Count(of)}
		check.Equal(t, name, got, []bool{want.refreshes, want.exchanges, want.all})
	}
}

// TestTotalIsValidated: every problem is reported with its path.
func TestTotalIsValidated(t *testing.T) {
	strict := NewLimit("strict", 100, time.Hour)
	strict.MakeStrict()
	p := Policy{
		User:   []Limit{NewLimit("a", 10, time.Minute), NewLimit("b", 50, time.Hour)},
		Client: []Limit{NewLimit("a", 10, time.Minute)},
		Total:  []Limit{NewLimit("b", 5, time.Minute), strict, DefaultLimit(), NewLimit("short", 5, time.Second)},
	}
	var got []string
	for _, e := range fielderr.Of(p.Validate()) {
		got = append(got, e.Path)
	}
	check.Equal(t, "paths", strings.Join(got, " "), "total[1].strict total[2].name total[0].requests total[0].name total[0].requests")
	p.Total = make([]Limit, MaxShared+1)
	check.Equal(t, "too many", fielderr.Of(p.Validate())[0].Path, "total")
}
