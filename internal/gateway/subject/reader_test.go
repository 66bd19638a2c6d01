package subject_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/subject"
)

// jwt returns a token with the payload and an invalid signature.
func jwt(payload string) string {
	e := base64.RawURLEncoding.EncodeToString
	return e([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + e([]byte(payload)) + "." + e(make([]byte, 256))
}

// keycloakAnswer has the form and size of an answer of Keycloak 26, with invented users and keys.
func keycloakAnswer() string {
	roles := `"realm_access":{"roles":["offline_access","uma_authorization","default-roles-acme"]},` +
		`"resource_access":{"account":{"roles":["manage-account","manage-account-links","view-profile"]}}`
	access := jwt(`{"exp":1764000300,"iat":1764000000,"jti":"onrtac:6e6b","iss":"https://id.example/realms/acme","aud":"account",` +
		`"sub":"8d1e5a4c-95c8-4b4c-a1f3-0a4b1f3c2d5e","typ":"Bearer","azp":"app","sid":"f0","acr":"1",` + roles +
		`,"scope":"openid profile email","email_verified":true,"preferred_username":"alice"}`)
	refresh := jwt(`{"exp":1764001800,"sub":"8d1e5a4c-95c8-4b4c-a1f3-0a4b1f3c2d5e","typ":"Refresh","azp":"app"}`)
	id := jwt(`{"exp":1764000300,"iss":"https://id.example/realms/acme","aud":"app","sub":"8d1e5a4c-95c8-4b4c-a1f3-0a4b1f3c2d5e",` +
		`"typ":"ID","azp":"app","at_hash":"x","name":"Alice Miller","preferred_username":"alice"}`)
	return fmt.Sprintf(`{"access_token":%q,"expires_in":300,"refresh_expires_in":1800,"refresh_token":%q,"token_type":"Bearer",`+
		`"id_token":%q,"not-before-policy":0,"session_state":"f0","scope":"openid profile email"}`, access, refresh, id)
}

// hydraAnswer has the form of an answer of Ory Hydra, with opaque access tokens.
func hydraAnswer() string {
	return fmt.Sprintf(`{"access_token":"ory_at_x.y","expires_in":3599,"id_token":%q,"refresh_token":"ory_rt_a.b",`+
		`"scope":"openid offline","token_type":"bearer"}`, jwt(`{"sub":"u-1","aud":["app"]}`))
}

func read(t *testing.T, claim, answer string) subject.Answer {
	t.Helper()
	reader, err := subject.NewReader(claim)
	check.OK(t, err)
	return reader.Read([]byte(answer))
}

// TestServers reads answers in the form of well-known servers.
func TestServers(t *testing.T) {
	c := read(t, "", keycloakAnswer())
	check.Equal(t, "sub", c.Subject, "8d1e5a4c-95c8-4b4c-a1f3-0a4b1f3c2d5e")
	check.Equal(t, "lifetime", c.Lifetime, 30*time.Minute)
	check.Equal(t, "expires", c.Expires(noon), noon.Add(30*time.Minute))
	c.Lifetime = 0
	check.Equal(t, "expires without a lifetime", c.Expires(noon), time.Time{})
	check.Equal(t, "preferred_username", read(t, "preferred_username", keycloakAnswer()).Subject, "alice")
	check.Equal(t, "typ, which both have", read(t, "typ", keycloakAnswer()).Subject, "ID")
	check.Equal(t, "scope, of the access token", read(t, "scope", keycloakAnswer()).Subject, "openid profile email")
	c = read(t, "", hydraAnswer())
	check.Equal(t, "hydra", c.Subject, "u-1")
	check.Equal(t, "its token", c.AccessToken(), "ory_at_x.y")
	check.Equal(t, "its refresh token", c.Refresh, subject.DigestOf("ory_rt_a.b"))
}

// TestSubject reads an answer for every reason, and answers close to it.
func TestSubject(t *testing.T) {
	u := jwt(`{"sub":"u"}`)
	parts := strings.Split(u, ".")
	for name, c := range map[string]struct {
		answer, subject string
		reason          subject.Reason
	}{
		"no JSON":             {`access_token=x`, "", subject.MalformedAnswer},
		"an array":            {`[{"id_token":"x"}]`, "", subject.MalformedAnswer},
		"something after it":  {`{} {}`, "", subject.MalformedAnswer},
		"a comma at the end":  {`{"id_token":"` + u + `",}`, "", subject.MalformedAnswer},
		"too large":           {`{}` + strings.Repeat(" ", subject.MaxAnswer), "", subject.MalformedAnswer},
		"nested deeply":       {`{"a":` + strings.Repeat("[", 500_000), "", subject.MalformedAnswer},
		"id_token twice":      {`{"id_token":"` + u + `","id_token":"` + u + `"}`, "", subject.AmbiguousAnswer},
		"once with an escape": {`{"id_token":"` + u + `","\u0069d_token":"` + u + `"}`, "", subject.AmbiguousAnswer},
		"null and a token":    {`{"id_token":null,"id_token":"` + u + `"}`, "", subject.AmbiguousAnswer},
		"another name twice":  {`{"id_token":"` + u + `","x":1,"x":2}`, "u", subject.Known},
		"nothing":             {`{}`, "", subject.NoJWT},
		"opaque":              {`{"access_token":"opaque"}`, "", subject.NoJWT},
		"opaque with dots":    {`{"access_token":"ory.at.x"}`, "", subject.NoJWT},
		"no string":           {`{"access_token":{"sub":"u"}}`, "", subject.NoJWT},
		"access token only":   {`{"access_token":"` + u + `"}`, "u", subject.Known},
		"id_token first":      {`{"access_token":"` + jwt(`{"sub":"v"}`) + `","id_token":"` + u + `"}`, "u", subject.Known},
		"null id_token":       {`{"access_token":"` + u + `","id_token":null}`, "u", subject.Known},
		"empty id_token":      {`{"access_token":"` + u + `","id_token":""}`, "", subject.BadIDToken},
		"id_token an object":  {`{"access_token":"` + u + `","id_token":{}}`, "", subject.BadIDToken},
		"encrypted id_token":  {`{"id_token":"a.b.c.d.e"}`, "", subject.BadIDToken},
		"no signature":        {`{"id_token":"` + parts[0] + "." + parts[1] + `."}`, "u", subject.Known},
		"two parts":           {`{"id_token":"` + parts[0] + "." + parts[1] + `"}`, "", subject.BadIDToken},
		"header is no object": {`{"id_token":"MQ.` + parts[1] + `."}`, "", subject.BadIDToken},
		"padding":             {`{"id_token":"` + parts[0] + "." + parts[1] + `=."}`, "", subject.BadIDToken},
		"a line end in it":    {`{"id_token":"` + parts[0] + "." + parts[1] + `\n."}`, "", subject.BadIDToken},
		"escapes in it":       {`{"id_token":"` + strings.ReplaceAll(u, ".", `\u002e`) + `"}`, "u", subject.Known},
		"payload an array":    {`{"id_token":"` + jwt(`["sub"]`) + `"}`, "", subject.BadIDToken},
		"claim elsewhere":     {`{"id_token":"` + jwt(`{"a":{"sub":"v"}}`) + `","access_token":"` + u + `"}`, "u", subject.Known},
		"no claim at all":     {`{"id_token":"` + jwt(`{}`) + `","access_token":"opaque"}`, "", subject.NoClaim},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, "", c.answer)
			check.Equal(t, "subject", got.Subject, c.subject)
			check.Equal(t, "reason", got.Reason.String(), c.reason.String())
		})
	}
}

// TestClaim reads values of the claim.
func TestClaim(t *testing.T) {
	for payload, want := range map[string]struct {
		subject string
		reason  subject.Reason
	}{
		`{"sub":"u","sub":"v"}`:                      {"", subject.AmbiguousClaim},
		`{"sub":"u","s\u0075b":"u"}`:                 {"", subject.AmbiguousClaim},
		`{"sub":"u","act":{"sub":"v"}}`:              {"u", subject.Known},
		`{"sub":null}`:                               {"", subject.NoClaim},
		`{"Sub":"u"}`:                                {"", subject.NoClaim},
		`{"sub":true}`:                               {"", subject.ClaimType},
		`{"sub":["u"]}`:                              {"", subject.ClaimType},
		`{"sub":{"id":"u"}}`:                         {"", subject.ClaimType},
		`{"sub":42}`:                                 {"42", subject.Known},
		`{"sub":-42}`:                                {"-42", subject.Known},
		`{"sub":18446744073709551616}`:               {"18446744073709551616", subject.Known},
		`{"sub":-0}`:                                 {"", subject.ClaimType},
		`{"sub":4.0}`:                                {"", subject.ClaimType},
		`{"sub":4e1}`:                                {"", subject.ClaimType},
		`{"sub":""}`:                                 {"", subject.UnfitSubject},
		`{"sub":" total"}`:                           {"", subject.UnfitSubject},
		`{"sub":"\u0020total"}`:                      {"", subject.UnfitSubject},
		`{"sub":"a\u0000"}`:                          {"", subject.UnfitSubject},
		`{"sub":"a\u0085"}`:                          {"", subject.UnfitSubject},
		`{"sub":"a` + "\x7f" + `"}`:                  {"", subject.UnfitSubject},
		`{"sub":"a` + "\xff" + `"}`:                  {"", subject.UnfitSubject},
		`{"sub":"\ud800"}`:                           {"", subject.UnfitSubject},
		`{"sub":"\ud83d\ude00 \"\/"}`:                {"😀 \"/", subject.Known},
		`{"sub":"` + strings.Repeat("a", 255) + `"}`: {strings.Repeat("a", 255), subject.Known},
		`{"sub":"` + strings.Repeat("é", 128) + `"}`: {"", subject.UnfitSubject},
		`{"sub":` + strings.Repeat("1", 256) + `}`:   {"", subject.ClaimType},
		`{"x":"` + strings.Repeat("a", 4000) + `","sub":"u"}`: {"u", subject.Known},
	} {
		got := read(t, "", `{"id_token":"`+jwt(payload)+`"}`)
		check.Equal(t, "subject of "+payload, got.Subject, want.subject)
		check.Equal(t, "reason of "+payload, got.Reason.String(), want.reason.String())
	}
}

// TestRefresh checks the digest and the lifetime, which do not depend on the subject.
func TestRefresh(t *testing.T) {
	const year = 365 * 24 * time.Hour
	r, none := subject.DigestOf("r/="), subject.Digest{}
	for answer, want := range map[string]subject.Answer{
		`{"refresh_token":"r/="}`:                                                       {Refresh: r},
		`{"refresh_token":"r\/\u003d"}`:                                                 {Refresh: r},
		`{"refresh_token":""}`:                                                          {Refresh: none},
		`{"refresh_token":null,"refresh_expires_in":5}`:                                 {Refresh: none},
		`{"refresh_token":5}`:                                                           {Refresh: none},
		`{"refresh_token":"é"}`:                                                         {Refresh: none},
		`{"refresh_token":"r/=","refresh_expires_in":5}`:                                {Refresh: r, Lifetime: 5 * time.Second},
		`{"refresh_token":"r/=","refresh_expires_in":0}`:                                {Refresh: r},
		`{"refresh_token":"r/=","refresh_expires_in":-5}`:                               {Refresh: r},
		`{"refresh_token":"r/=","refresh_expires_in":1.5}`:                              {Refresh: r},
		`{"refresh_token":"r/=","refresh_token_expires_in":"5"}`:                        {Refresh: r, Lifetime: 5 * time.Second},
		`{"refresh_token":"r/=","refresh_token_expires_in":99999999999}`:                {Refresh: r, Lifetime: 10 * year},
		`{"refresh_token":"r/=","refresh_token_expires_in":99999999999999999999}`:       {Refresh: r, Lifetime: 10 * year},
		`{"refresh_token":"r/=","refresh_expires_in":7,"refresh_token_expires_in":"5"}`: {Refresh: r, Lifetime: 7 * time.Second},
	} {
		want.Reason = subject.NoJWT
		check.Equal(t, answer, read(t, "", answer), want)
	}
	check.Equal(t, "twice", read(t, "", `{"refresh_token":"a","refresh_token":"b"}`), subject.Answer{Reason: subject.AmbiguousAnswer})
}

func TestNewReader(t *testing.T) {
	for _, claim := range []string{" sub", "a\n", "\xff", strings.Repeat("a", 256)} {
		_, err := subject.NewReader(claim)
		check.ErrorSays(t, err, "1 to 255 bytes")
	}
}

// TestReasons checks that each reason has its own label.
func TestReasons(t *testing.T) {
	seen := map[string]bool{subject.Known.String(): true, "": true}
	for _, r := range subject.Reasons() {
		if seen[r.String()] {
			t.Errorf("%q twice", r)
		}
		seen[r.String()] = true
	}
	check.Equal(t, "reasons", len(seen), 13)
	check.Equal(t, "another", subject.Reason(200).String(), "unknown")
}
