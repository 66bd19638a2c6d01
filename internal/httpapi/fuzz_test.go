package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireAnswer checks what holds for any answer of the token endpoint.
func requireAnswer(t *testing.T, res *reply) {
	t.Helper()
	require.Less(t, res.StatusCode, http.StatusInternalServerError)
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))
	require.Equal(t, "no-store", res.Header.Get("Cache-Control"))
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(res.Body), &doc))
	if res.StatusCode != http.StatusOK {
		require.IsType(t, "", doc["error"])
		description, _ := doc["error_description"].(string)
		for _, r := range description {
			require.True(t, r >= 0x20 && r <= 0x7e && r != '"' && r != '\\', "%q in an error_description", r)
		}
	}
	require.Equal(t, res.StatusCode == http.StatusUnauthorized, res.Header.Get("WWW-Authenticate") != "")
}

func FuzzTokenForm(f *testing.F) {
	f.Add("grant_type=client_credentials&client_id=shop&client_secret=s3cret", formType)
	f.Add("grant_type=authorization_code&code=a&code=b", formType+"; charset=UTF-8")
	f.Add("grant_type=%00&client_id=%ff&=&&x", formType)
	f.Add("grant_type", "text/plain;;")
	f.Add("%=%&+=+&;a=b", "")
	s := newServer(f, newFake(), nil)
	f.Fuzz(func(t *testing.T, body, contentType string) {
		res := request{path: "/token", body: body, header: http.Header{"Content-Type": {contentType}}}.send(t, s)
		requireAnswer(t, res)
		if res.StatusCode == http.StatusOK {
			v, err := url.ParseQuery(body)
			require.NoError(t, err)
			require.Equal(t, []string{secretOf}, notEmpty(v["client_secret"]), "a token without the secret")
		}
	})
}

func notEmpty(values []string) (out []string) {
	for _, v := range values {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}

func FuzzBasicHeader(f *testing.F) {
	for _, s := range []string{
		basic("shop", secretOf)[0], basic("%73hop", "s3cret")[0], "Basic", "basic  " + base64.StdEncoding.EncodeToString([]byte("a:b")),
		"Basic Og==", "Bearer x", "", "Basic =", basic("shop", "s3cret\x00")[0], basic("%", "%")[0],
	} {
		f.Add(s)
	}
	s := newServer(f, newFake(), nil)
	f.Fuzz(func(t *testing.T, header string) {
		res := request{path: "/token", body: "grant_type=client_credentials", header: http.Header{"Authorization": {header}}}.
			send(t, s)
		requireAnswer(t, res)
		if res.StatusCode == http.StatusOK {
			_, b64, _ := strings.Cut(header, " ")
			raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(b64))
			require.NoError(t, err)
			plain, err := url.QueryUnescape(string(raw))
			require.NoError(t, err)
			require.Equal(t, "shop:"+secretOf, plain)
		}
	})
}

func FuzzAuthorizeQuery(f *testing.F) {
	f.Add(authorization().Encode(), true)
	f.Add(authorization().Encode()+"&redirect_uri=https://evil.example", false)
	f.Add("client_id=shop&redirect_uri=https://app.example.evil/cb&response_type=code", true)
	f.Add("client_id=shop&redirect_uri=com.example.app:/cb&response_type=token&state=%0d%0aLocation:%20x", true)
	f.Add("response_mode=form_post&"+authorization().Encode()+"&state=2", false)
	f.Add("%zz&&=;", false)
	fake := newFake()
	s := newServer(f, fake, nil)
	f.Fuzz(func(t *testing.T, query string, signedIn bool) {
		u := &url.URL{Path: "/authorize", RawQuery: query}
		if _, err := url.ParseRequestURI(u.String()); err != nil || strings.ContainsAny(query, " \x00\r\n\t\x7f") {
			t.Skip("not a request line that net/http would let through")
		}
		cookie := ""
		if signedIn {
			cookie = fake.signedIn("alice")
		}
		res := get(t, s, u.String(), cookie)
		require.Less(t, res.StatusCode, http.StatusInternalServerError)
		location := res.Header.Get("Location")
		if location == "" {
			require.Equal(t, "text/html; charset=utf-8", res.Header.Get("Content-Type"))
			return
		}
		require.Equal(t, http.StatusSeeOther, res.StatusCode)
		registered := false
		for _, target := range fake.client.RedirectURIs {
			registered = registered || strings.HasPrefix(location, target+"&") || strings.HasPrefix(location, target+"?")
		}
		require.True(t, registered, location)
		require.NotContains(t, location, "code=")
		require.Contains(t, location, "iss=")
	})
}
