package tokenrequest_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/gateway/tokenrequest"
)

const (
	formType  = "application/x-www-form-urlencoded"
	jwtBearer = "client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer"

	// exampleBasic is the client in the examples of RFC 6749.
	exampleBasic = "Basic czZCaGRSa3F0MzpnWDFmQmF0M2JW"
)

// form returns the header of a request with a form, with fields given as name, value.
func form(fields ...string) http.Header {
	return header(append([]string{"Content-Type", formType}, fields...)...)
}

func header(fields ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return h
}

func basic(credentials string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
}

// jwt returns the parameter client_assertion with these claims.
func jwt(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf("client_assertion=%s.%s.%s", part([]byte(`{"alg":"RS256"}`)), part([]byte(claims)), part([]byte("signature")))
}

// wantRefused checks that the request is refused, and that the description gives the reason and
// fits a response.
func wantRefused(t *testing.T, h http.Header, query, body, why string) {
	t.Helper()
	r, _, err := tokenrequest.Read(h, query, []byte(body))
	var refused *tokenrequest.Error
	if !errors.As(err, &refused) {
		t.Fatalf("read as %+v, error %v", r, err)
	}
	check.ErrorSays(t, err, why)
	wantDescription(t, refused)
	check.Equal(t, "the request", r, tokenrequest.Request{})
}

func wantDescription(t *testing.T, refused *tokenrequest.Error) {
	t.Helper()
	for _, r := range refused.Description {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			t.Fatalf("%q in the description %q", r, refused.Description)
		}
	}
}

func TestReadForm(t *testing.T) {
	const id = "s6BhdRkqt3"
	long := strings.Repeat("x", 255)
	for name, c := range map[string]struct {
		header http.Header
		body   string
		want   tokenrequest.Request
	}{
		"RFC 6749 2.3.1, client in the body": {
			form(), "grant_type=refresh_token&refresh_token=tGzv3JOkF0XG5Qx2TlKWIA&client_id=s6BhdRkqt3&client_secret=7Fjfp0ZBr1KtDRbnfVdmIw",
			tokenrequest.Request{ClientID: id, Grant: "refresh_token", RefreshToken: subject.DigestOf("tGzv3JOkF0XG5Qx2TlKWIA")},
		},
		"RFC 6749 4.1.3, authorization code": {
			form("Authorization", exampleBasic),
			"grant_type=authorization_code&code=SplxlOBeZQQYbYS6WxSbIA&redirect_uri=https%3A%2F%2Fclient%2Eexample%2Ecom%2Fcb",
			tokenrequest.Request{ClientID: id, Grant: "authorization_code"},
		},
		"RFC 6749 4.3.2, password": {
			form("Authorization", exampleBasic), "grant_type=password&username=johndoe&password=A3ddj3w",
			tokenrequest.Request{ClientID: id, Grant: "password", Username: "johndoe"},
		},
		"RFC 6749 4.4.2, client credentials": {
			form("Authorization", exampleBasic), "grant_type=client_credentials",
			tokenrequest.Request{ClientID: id, Grant: "client_credentials"},
		},
		"RFC 6749 6, refresh": {
			form("Authorization", exampleBasic), "grant_type=refresh_token&refresh_token=tGzv3JOkF0XG5Qx2TlKWIA",
			tokenrequest.Request{ClientID: id, Grant: "refresh_token", RefreshToken: subject.DigestOf("tGzv3JOkF0XG5Qx2TlKWIA")},
		},
		"RFC 7523 2.2, client assertion": {
			form(), "grant_type=client_credentials&" + jwtBearer + "&" + jwt(`{"iss":"s6BhdRkqt3","sub":"s6BhdRkqt3","aud":["a"],"exp":1}`),
			tokenrequest.Request{ClientID: id, Grant: "client_credentials"},
		},
		"RFC 8707, several resources": {
			form(), "grant_type=client_credentials&client_id=a&resource=https://a&resource=https://b&scope=x&scope=y&audience=u&audience=v",
			tokenrequest.Request{ClientID: "a", Grant: "client_credentials"},
		},
		"RFC 8693, token exchange": {
			form(), "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&client_id=a&subject_token=x",
			tokenrequest.Request{ClientID: "a", Grant: "urn:ietf:params:oauth:grant-type:token-exchange"},
		},
		"all say the same client": {
			form("Authorization", exampleBasic), "client_id=s6BhdRkqt3&" + jwtBearer + "&" + jwt(`{"sub":"s6BhdRkqt3"}`),
			tokenrequest.Request{ClientID: id},
		},
		"assertion of another issuer, and client_id": {
			form(), "client_id=a&" + jwtBearer + "&" + jwt(`{"iss":"https://cluster.example","sub":"system:serviceaccount:ns:app"}`),
			tokenrequest.Request{ClientID: "a"},
		},
		"assertion of another issuer alone": {
			form(), jwtBearer + "&" + jwt(`{"iss":"https://cluster.example","sub":"system:serviceaccount:ns:app"}`),
			tokenrequest.Request{ClientID: "system:serviceaccount:ns:app"},
		},
		"SPIFFE": {
			form(), strings.Replace(jwtBearer, "jwt-bearer", "jwt-spiffe", 1) + "&" + jwt(`{"sub":"spiffe://example.org/app"}`),
			tokenrequest.Request{ClientID: "spiffe://example.org/app"},
		},
		"SAML assertion":                {form(), "client_assertion_type=urn:ietf:params:oauth:client-assertion-type:saml2-bearer&client_assertion=PHNhbWxw", tokenrequest.Request{}},
		"assertion type only":           {form(), jwtBearer, tokenrequest.Request{}},
		"nobody":                        {form(), "grant_type=password", tokenrequest.Request{Grant: "password"}},
		"nothing":                       {header(), "", tokenrequest.Request{}},
		"empty counts as omitted":       {form(), "client_id=&grant_type&username=&code=", tokenrequest.Request{}},
		"bearer token":                  {form("Authorization", "Bearer c2hvcDpz"), "client_id=a", tokenrequest.Request{ClientID: "a"}},
		"basic in lower case":           {form("Authorization", "basic czZCaGRSa3F0MzpnWDFmQmF0M2JW"), "", tokenrequest.Request{ClientID: id}},
		"Basic and two spaces":          {form("Authorization", "Basic  YTpi"), "", tokenrequest.Request{ClientID: "a"}},
		"Basic and a tab":               {form("Authorization", "Basic \tYTpi"), "", tokenrequest.Request{ClientID: "a"}},
		"Basic without padding":         {form("Authorization", "Basic YTo"), "", tokenrequest.Request{ClientID: "a"}},
		"encoded Basic":                 {form("Authorization", basic("https%3A%2F%2Fa+b:c%3Ad")), "", tokenrequest.Request{ClientID: "https://a b"}},
		"Basic whose secret is not":     {form("Authorization", basic("shop:100%:x")), "", tokenrequest.Request{ClientID: "shop"}},
		"Basic without a secret":        {form("Authorization", basic("shop:")), "", tokenrequest.Request{ClientID: "shop"}},
		"long Basic secret":             {form("Authorization", basic("a%62:"+strings.Repeat("s", 2000))), "", tokenrequest.Request{ClientID: "ab"}},
		"encoded names and values":      {form(), "client%5Fid=a%2bb+%c3%bc&gran%74_type=%70assword&username=j+d%40x", tokenrequest.Request{ClientID: "a+b ü", Grant: "password", Username: "j d@x"}},
		"spaces around a username":      {form(), "grant_type=password&username=+j+", tokenrequest.Request{Grant: "password", Username: " j "}},
		"username of no password grant": {form(), "grant_type=client_credentials&username=j&code=c&refresh_token=r", tokenrequest.Request{Grant: "client_credentials"}},
		"charset":                       {header("Content-Type", formType+`;charset="UTF-8"`), "client_id=a", tokenrequest.Request{ClientID: "a"}},
		"charset of ASCII":              {header("Content-Type", formType+"; charset=ISO-8859-1"), "client_id=a&client_secret=%fc&password=%fc", tokenrequest.Request{ClientID: "a"}},
		"ASCII":                         {header("Content-Type", formType+"; charset=us-ascii"), "client_id=a", tokenrequest.Request{ClientID: "a"}},
		"other attributes":              {header("Content-Type", formType+`; charset=UTF-8; foo=bar; x="y z";`), "client_id=a", tokenrequest.Request{ClientID: "a"}},
		"attributes of JSON":            {header("Content-Type", "application/json; foo=bar"), `{"client_id":"a"}`, tokenrequest.Request{ClientID: "a"}},
		"several resources":             {form(), "client_id=a&resource=x&resource=y&audience=z&audience=z", tokenrequest.Request{ClientID: "a"}},
		"Basic of nobody":               {form("Authorization", basic(":")), "client_id=a&client_secret=b", tokenrequest.Request{ClientID: "a"}},
		"a raw Basic secret":            {form("Authorization", basic("shop:a+b/c%zz=")), "", tokenrequest.Request{ClientID: "shop"}},
		"type in capitals":              {header("Content-Type", "Application/X-WWW-Form-URLEncoded; charset=utf8"), "client_id=a", tokenrequest.Request{ClientID: "a"}},
		"identity":                      {form("Content-Encoding", "Identity"), "client_id=a", tokenrequest.Request{ClientID: "a"}},
		"names that only resemble":      {form(), "client=x&id=y&code_verifier=z&client_id_issued_at=1&user%2Fname=q&Scope=s&resource[]=r&codes[]=1", tokenrequest.Request{}},
		"semicolon elsewhere":           {form(), "client_id=a&scope=x;y&password=a;b=c", tokenrequest.Request{ClientID: "a"}},
		"encoded semicolon":             {form(), "client_id=a%3Bb&x=y%3Bclient_id=c", tokenrequest.Request{ClientID: "a;b"}},
		"no text in another value":      {form(), "client_id=a&password=%ff%00", tokenrequest.Request{ClientID: "a"}},
		"empty parameters":              {form(), "&&=&client_id=a&=x&", tokenrequest.Request{ClientID: "a"}},
		"longest names":                 {form(), "grant_type=password&client_id=" + long + "&username=" + long, tokenrequest.Request{ClientID: long, Grant: "password", Username: long}},
		"long escaped token":            {form(), "grant_type=refresh_token&refresh_token=" + strings.Repeat("%2b", 2000), tokenrequest.Request{Grant: "refresh_token", RefreshToken: subject.DigestOf(strings.Repeat("+", 2000))}},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(c.body)
			got, _, err := tokenrequest.Read(c.header, "tenant=a&scope=x&scope=y", body)
			check.OK(t, err)
			clear(body) // nothing of it is retained
			check.Equal(t, "the request", got, c.want)
		})
	}
}

// The secrets of a request do not appear when it is logged.
func TestRequestPrintsNoSecret(t *testing.T) {
	for _, body := range []string{"grant_type=refresh_token&refresh_token=hush", "grant_type=authorization_code&code=hush", "grant_type=password&username=a&password=hush&client_id=b&client_secret=hush"} {
		r, _, err := tokenrequest.Read(form(), "", []byte(body))
		check.OK(t, err)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if printed := fmt.Sprintf(verb, r); strings.Contains(printed, "hush") {
				t.Errorf("%s prints %s", verb, printed)
			}
		}
	}
}
