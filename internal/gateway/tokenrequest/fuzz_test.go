package tokenrequest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
)

var checked = []string{
	"client_id", "client_secret", "grant_type", "username", "refresh_token", "code", "client_assertion", "client_assertion_type",
}

// FuzzReadForm checks that net/url, a parser that also separates by semicolons, and one that
// ignores case read an accepted form in the same way.
//
// Attack (input): A gateway and its upstream read a request differently. The gateway refuses
// requests that parsers could read differently. Also tokenrequest.FuzzReadJSON,
// subject.FuzzRead.
func FuzzReadForm(f *testing.F) {
	for _, body := range []string{
		"grant_type=password&username=johndoe&password=A3ddj3w", "grant_type=refresh_token&refresh_token=a%2Bb", "grant_type=authorization_code&code=c&client_id=s6BhdRkqt3",
		"client%5Fid=a+b&&=&x", "scope=a;code=b", "Client_ID=a", "client.id=a&client[id=b&[client_id]=c", "username=%c3%bc%00", "client_id=%zz",
		jwtBearer + "&" + jwt(`{"sub":"s6BhdRkqt3"}`), jwtBearer + "&" + jwt(`{"Sub":"a"}`),
	} {
		f.Add(body, "tenant=a;b", exampleBasic)
		f.Add(body, "", "Bearer abc")
	}
	f.Add("client_id=a%2Bb", "code=a", basic("a%2Bb:c"))
	f.Add("client_id=a", "", "Basic \tYTo")
	f.Fuzz(func(t *testing.T, body, query, authorization string) {
		h := form("Authorization", authorization)
		got, _, err := tokenrequest.Read(h, query, []byte(body))
		if err != nil {
			wantError(t, err)
			return
		}
		wantNotChecked(t, query)
		for _, separators := range []string{body, strings.ReplaceAll(body, ";", "&")} {
			values, err := url.ParseQuery(separators)
			if err != nil {
				continue
			}
			wantSimilarNone(t, values)
			for _, name := range checked {
				if len(values[name]) > 1 {
					t.Errorf("%s is repeated: %q", name, values[name])
				}
			}
			check.Equal(t, "the request", got, expected(t, h, values.Get))
		}
	})
}

// FuzzReadJSON checks that encoding/json reads an accepted object in the same way, into a map and
// into a struct, where it ignores the case of names.
func FuzzReadJSON(f *testing.F) {
	for _, body := range []string{
		`{"client_id":"a","grant_type":"password","username":"\u00fc\/"}`, `{"x":[{"code":"]}"}],"code":"b","grant_type":"authorization_code"}`,
		`{"Client_ID":"a"}`, `{"client_id":null}`, `{"a":1,"a":2}`, ` { } `, `[]`, `{"refresh_token":"\ud800"}`, `{"a":-1e5,"grant_type":"refresh_token","refresh_token":""}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		h := header("Content-Type", "application/json")
		got, _, err := tokenrequest.Read(h, "", []byte(body))
		if err != nil {
			wantError(t, err)
			return
		}
		var values map[string]any
		check.OK(t, json.Unmarshal([]byte(body), &values))
		check.Equal(t, "the request", got, expected(t, h, func(name string) string { s, _ := values[name].(string); return s }))
		var fields struct {
			ClientID string `json:"client_id"`
			Username string `json:"username"`
		}
		check.OK(t, json.Unmarshal([]byte(body), &fields))
		for name, field := range map[string]string{"client_id": fields.ClientID, "username": fields.Username} {
			if text, _ := values[name].(string); text != field {
				t.Errorf("%s is %q in a map and %q in a struct", name, text, field)
			}
		}
	})
}

func wantError(t *testing.T, err error) {
	t.Helper()
	var refused *tokenrequest.Error
	if !errors.As(err, &refused) {
		t.Fatalf("an error of another type: %v", err)
	}
	wantDescription(t, refused)
}

func wantNotChecked(t *testing.T, query string) {
	t.Helper()
	for _, separators := range []string{query, strings.ReplaceAll(query, ";", "&")} {
		values, _ := url.ParseQuery(separators) // the part that it can parse
		wantSimilarNone(t, values)
		for _, name := range checked {
			if values.Has(name) {
				t.Errorf("%s is in the query", name)
			}
		}
	}
}

// wantSimilarNone checks that a server that ignores case, and PHP, read no name as a checked one.
func wantSimilarNone(t *testing.T, values url.Values) {
	t.Helper()
	for name := range values {
		php, _, _ := strings.Cut(strings.TrimLeft(name, " "), "[")
		php = strings.NewReplacer(" ", "_", ".", "_").Replace(php)
		for _, j := range checked {
			if name != j && (strings.EqualFold(name, j) || php == j) {
				t.Errorf("%q was accepted", name)
			}
		}
	}
}

// expected returns the request as the standard library reads it.
func expected(t *testing.T, h http.Header, value func(name string) string) (r tokenrequest.Request) {
	t.Helper()
	sources := []string{value("client_id")}
	strict := http.Header{} // as net/http reads it
	if words := strings.Fields(h.Get("Authorization")); len(words) == 2 {
		credentials := strings.TrimRight(words[1], "=")
		strict.Set("Authorization", words[0]+" "+credentials+strings.Repeat("=", -len(credentials)&3))
	}
	if id, _, ok := (&http.Request{Header: strict}).BasicAuth(); ok {
		id, err := url.QueryUnescape(id)
		check.OK(t, err)
		sources = append(sources, id)
	}
	const bearer, spiffe = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe"
	if kind := value("client_assertion_type"); value("client_assertion") != "" && (kind == bearer || kind == spiffe) {
		payload, err := base64.RawURLEncoding.DecodeString(strings.Split(value("client_assertion"), ".")[1])
		check.OK(t, err)
		var claims struct{ Iss, Sub string }
		check.OK(t, json.Unmarshal(payload, &claims))
		if claims.Iss == "" || claims.Iss == claims.Sub || value("client_id") == "" {
			sources = append(sources, claims.Sub)
		}
	}
	sources = slices.DeleteFunc(sources, func(id string) bool { return id == "" })
	if sources = slices.Compact(sources); len(sources) > 1 {
		t.Fatalf("different clients %q", sources)
	}
	r.ClientID, r.Grant = strings.Join(sources, ""), value("grant_type")
	switch r.Grant {
	case "password":
		r.Username = value("username")
	case "refresh_token":
		if token := value("refresh_token"); token != "" {
			r.RefreshToken = subject.DigestOf(token)
		}
	}
	return r
}

func digest(text string) subject.Digest {
	if text == "" {
		return subject.Digest{}
	}
	return sha256.Sum256([]byte(text))
}
