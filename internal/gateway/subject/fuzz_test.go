package subject_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/subject"
)

// FuzzRead checks that nothing panics, that a subject is always valid, and that it equals the one
// that encoding/json finds if no name occurs twice.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		keycloakAnswer(), hydraAnswer(), `{}`, `{"a":[1,-0.5e+3,true,false,null,{"b":"\ud83d\ude00"}]} `, `{"id_token":"` + jwt(`{"sub":7}`) + `"}`,
		`{"refresh_token":"r","\u0072efresh_token":"s"}`, `{"id_token":"` + jwt(`{"sub":" total"}`) + `","refresh_expires_in":"1"}`,
	} {
		f.Add([]byte(seed))
	}
	reader, err := subject.NewReader("")
	check.OK(f, err)
	f.Fuzz(func(t *testing.T, body []byte) {
		compare(t, reader.Read(body), body)
		// Most changes of a body break the token in it, so the same bytes are also tried as a
		// payload.
		wrapped := []byte(`{"id_token":"` + jwt(string(body)) + `"}`)
		compare(t, reader.Read(wrapped), wrapped)
	})
}

func compare(t *testing.T, got subject.Answer, body []byte) {
	t.Helper()
	if (got.Subject == "") != (got.Reason != subject.Known) || got.Refresh.IsZero() && got.Lifetime != 0 || got.Lifetime < 0 {
		t.Fatalf("%+v of %q", got, body)
	}
	if !usable(got.Subject) && got.Subject != "" {
		t.Fatalf("subject %q of %q", got.Subject, body)
	}
	answer, ok := object(body)
	if !ok || twice(body) {
		if !ok && got.Reason != subject.MalformedAnswer {
			t.Fatalf("%v of %q, which encoding/json refuses", got.Reason, body)
		}
		return
	}
	if got.Reason == subject.MalformedAnswer || got.Reason == subject.AmbiguousAnswer {
		if deep(body) || len(body) > subject.MaxAnswer {
			return
		}
		t.Fatalf("%v of %q", got.Reason, body)
	}
	if want, ok := expected(answer); ok && got.Subject != want {
		t.Fatalf("subject %q, encoding/json has %q, of %q", got.Subject, want, body)
	}
	token, _ := answer["refresh_token"].(string)
	want := subject.Digest{}
	if token != "" && !strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }) {
		want = subject.DigestOf(token)
	}
	if got.Refresh != want {
		t.Fatalf("digest %x of refresh token %q", got.Refresh, token)
	}
}

// usable is the contract for a subject, written differently from the code.
func usable(s string) bool {
	return s != "" && len(s) <= 255 && utf8.ValidString(s) && s[0] != ' ' && !strings.ContainsFunc(s, unicode.IsControl)
}

// expected returns the subject according to encoding/json, and whether the payloads are
// unambiguous.
func expected(answer map[string]any) (string, bool) {
	for _, name := range []string{"id_token", "access_token"} {
		if answer[name] == nil {
			continue
		}
		token, _ := answer[name].(string)
		payload, ok := payloadOf(token)
		claims, isObject := object(payload)
		if !ok || !isObject {
			return "", true // the access token is tried last
		}
		if twice(payload) || deep(payload) {
			return "", false
		}
		switch sub := claims["sub"].(type) {
		case nil:
			continue
		case string:
			if !usable(sub) || strings.ContainsRune(sub, utf8.RuneError) {
				return "", true
			}
			return sub, true
		case json.Number:
			if strings.ContainsAny(sub.String(), ".eE") || sub == "-0" || len(sub) > 255 {
				return "", true
			}
			return sub.String(), true
		default:
			return "", true
		}
	}
	return "", true
}

func payloadOf(token string) ([]byte, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || strings.ContainsAny(parts[0]+parts[1], "\r\n") {
		return nil, false
	}
	header, err := base64.RawURLEncoding.Strict().DecodeString(parts[0])
	if err != nil {
		return nil, false
	}
	if _, ok := object(header); !ok || deep(header) {
		return nil, false
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(parts[1])
	return payload, err == nil
}

// object parses b as a single JSON object.
func object(b []byte) (map[string]any, bool) {
	if !json.Valid(b) || bytes.TrimLeft(b, " \t\r\n")[0] != '{' {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var o map[string]any
	err := d.Decode(&o)
	return o, err == nil
}

// twice reports whether the object b has a name more than once.
func twice(b []byte) bool {
	d := json.NewDecoder(bytes.NewReader(b))
	if _, err := d.Token(); err != nil {
		return false
	}
	seen := map[any]bool{}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return false
		}
		if seen[name] {
			return true
		}
		seen[name] = true
	}
	return false
}

// deep reports whether JSON may be nested more deeply than jsontext reads.
func deep(b []byte) bool {
	return bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) > 10_000
}
