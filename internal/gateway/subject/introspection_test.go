package subject_test

import (
	"encoding/json"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/subject"
)

func TestReadIntrospection(t *testing.T) {
	for name, c := range map[string]struct {
		answer, subject string
		reason          subject.Reason
	}{
		"active":              {`{"active":true,"sub":"u","client_id":"shop"}`, "u", subject.Known},
		"a number":            {`{"sub":7,"active":true}`, "7", subject.Known},
		"inactive":            {`{"active":false}`, "", subject.IntrospectionInactive},
		"inactive with a sub": {`{"active":false,"sub":"u"}`, "", subject.IntrospectionInactive},
		"no active":           {`{"sub":"u"}`, "", subject.IntrospectionFailed},
		"active as text":      {`{"active":"true","sub":"u"}`, "", subject.IntrospectionFailed},
		"active is null":      {`{"active":null,"sub":"u"}`, "", subject.IntrospectionFailed},
		"another case":        {`{"Active":true,"sub":"u"}`, "", subject.IntrospectionFailed},
		"active twice":        {`{"active":false,"active":true,"sub":"u"}`, "", subject.AmbiguousClaim},
		"sub twice":           {`{"active":true,"sub":"u","sub":"v"}`, "", subject.AmbiguousClaim},
		"sub twice, escaped":  {`{"active":true,"sub":"u","s\u0075b":"u"}`, "", subject.AmbiguousClaim},
		"no sub":              {`{"active":true,"username":"u"}`, "", subject.NoClaim},
		"sub elsewhere":       {`{"active":true,"ext":{"sub":"u"}}`, "", subject.NoClaim},
		"sub of another type": {`{"active":true,"sub":["u"]}`, "", subject.ClaimType},
		"a space before it":   {`{"active":true,"sub":" total"}`, "", subject.UnfitSubject},
		"too long":            {`{"active":true,"sub":"` + strings.Repeat("u", 256) + `"}`, "", subject.UnfitSubject},
		"a JWT":               {jwt(`{"active":true,"sub":"u"}`), "", subject.IntrospectionFailed},
		"an array":            {`[{"active":true,"sub":"u"}]`, "", subject.IntrospectionFailed},
		"something after it":  {`{"active":true,"sub":"u"} x`, "", subject.IntrospectionFailed},
		"empty":               {``, "", subject.IntrospectionFailed},
	} {
		t.Run(name, func(t *testing.T) {
			reader, err := subject.NewReader("")
			check.OK(t, err)
			user, reason := reader.ReadIntrospection([]byte(c.answer))
			check.Equal(t, "user", user, c.subject)
			check.Equal(t, "reason", reason.String(), c.reason.String())
		})
	}
}

// TestIntrospectedClaim checks claims other than sub, including the one that says whether the token
// is active, which is not a name.
func TestIntrospectedClaim(t *testing.T) {
	for claim, want := range map[string]subject.Reason{"username": subject.Known, "active": subject.NoClaim} {
		reader, err := subject.NewReader(claim)
		check.OK(t, err)
		_, reason := reader.ReadIntrospection([]byte(`{"active":true,"username":"ada"}`))
		check.Equal(t, claim, reason.String(), want.String())
	}
}

func access(t *testing.T, answer string) string {
	t.Helper()
	a := read(t, "", answer)
	return a.AccessToken()
}

func TestAccessToken(t *testing.T) {
	longest := strings.Repeat("x", subject.MaxToken)
	for answer, want := range map[string]string{
		`{"access_token":"a b+/="}`:                    "a b+/=",
		`{"access_token":"\u0061"}`:                    "a",
		`{"access_token":"` + longest + `"}`:           longest,
		`{"access_token":"` + longest + `x"}`:          "",
		`{"access_token":""}`:                          "",
		`{"access_token":5}`:                           "",
		`{"access_token":"é"}`:                         "",
		`{"access_token":"a\nb"}`:                      "",
		`{"access_token":"a","access_token":"a"}`:      "",
		`{"id_token":1,"id_token":2,"access_token":1}`: "",
		`{}`:                     "",
		`{"access_token":"a"} x`: "",
		`{"access_token":"a"}` + strings.Repeat(" ", subject.MaxAnswer): "",
		``: "",
	} {
		check.Equal(t, "token", access(t, answer), want)
	}
}

// FuzzReadIntrospection checks that nothing panics, that a user is always valid, and that
// encoding/json finds the token active.
func FuzzReadIntrospection(f *testing.F) {
	for _, seed := range []string{`{"active":true,"sub":"u"}`, `{"active":false}`, `{"sub":7,"active":true} `, `{"active":true,"sub":" total"}`, `[]`} {
		f.Add([]byte(seed))
	}
	reader, err := subject.NewReader("")
	check.OK(f, err)
	f.Fuzz(func(t *testing.T, body []byte) {
		user, reason := reader.ReadIntrospection(body)
		if (user == "") != (reason != subject.Known) || user != "" && !usable(user) {
			t.Fatalf("%q, %v of %q", user, reason, body)
		}
		if reason != subject.Known {
			return
		}
		var answer map[string]any
		if err := json.Unmarshal(body, &answer); err != nil || answer["active"] != true {
			t.Fatalf("%q of %q: %v", user, body, err)
		}
	})
}
