package envoy_test

import (
	"encoding/base64"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc/codes"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
	"oauth-server/internal/ratelimit"
)

type httpRequest = authv3.AttributeContext_HttpRequest

// post returns a token request with that form, as Envoy sends it with pack_as_bytes, from
// 192.0.2.1.
func post(form string, edits ...func(*httpRequest)) *authv3.CheckRequest {
	r := &httpRequest{
		Method: "POST", Path: "/oauth2/token", RawBody: []byte(form),
		Headers: map[string]string{"content-type": "application/x-www-form-urlencoded", "x-envoy-auth-partial-body": "false", ":method": "POST"},
	}
	for _, edit := range edits {
		edit(r)
	}
	return &authv3.CheckRequest{Attributes: &authv3.AttributeContext{
		Source:  &authv3.AttributeContext_Peer{Address: socket("192.0.2.1")},
		Request: &authv3.AttributeContext_Request{Http: r},
	}}
}

func socket(address string) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: address}}}
}

func with(name, value string) func(*httpRequest) {
	return func(r *httpRequest) { r.Headers[name] = value }
}

func at(method, path string) func(*httpRequest) {
	return func(r *httpRequest) { r.Method, r.Path = method, path }
}

// raw moves the header into the form of encode_raw_headers and adds fields to it.
func raw(more ...string) func(*httpRequest) {
	return func(r *httpRequest) {
		r.HeaderMap = &corev3.HeaderMap{}
		for name, value := range r.Headers {
			more = append(more, name, value)
		}
		r.Headers = nil
		for i := 0; i < len(more); i += 2 {
			r.HeaderMap.Headers = append(r.HeaderMap.Headers, &corev3.HeaderValue{Key: more[i], RawValue: []byte(more[i+1])})
		}
	}
}

func asText(r *httpRequest) { r.Body, r.RawBody = string(r.RawBody), nil }

func basic(client string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(client+":secret"))
}

// authorized is an answer as Envoy reads it.
type authorized struct {
	status int
	fields map[string]string
	body   string
}

func (w *world) check(t *testing.T, in *authv3.CheckRequest) authorized {
	t.Helper()
	out, err := w.auth.Check(t.Context(), in)
	check.OK(t, err)
	ok, denied := out.GetOkResponse(), out.GetDeniedResponse()
	check.Equal(t, "the status is that of the answer", out.GetStatus().GetCode() == int32(codes.OK), ok != nil)
	a, options := authorized{status: int(denied.GetStatus().GetCode()), body: denied.GetBody(), fields: map[string]string{}}, denied.GetHeaders()
	if ok != nil {
		a.status, options = 200, ok.GetResponseHeadersToAdd()
	}
	for _, o := range options {
		a.fields[o.GetHeader().GetKey()] += o.GetHeader().GetValue()
	}
	return a
}

func TestAuthorization(t *testing.T) {
	const form = "client_id=shop&grant_type=client_credentials"
	type call struct {
		in   *authv3.CheckRequest
		want int
	}
	for name, calls := range map[string][]call{
		"a client":            {{post(form), 200}, {post(form), 200}, {post(form), 429}, {post("client_id=other&grant_type=client_credentials"), 200}},
		"by Basic":            {{post("grant_type=client_credentials", with("authorization", basic("shop"))), 200}, {post(form), 200}, {post(form), 429}},
		"in raw headers":      {{post("grant_type=client_credentials", raw("authorization", basic("shop"))), 200}, {post(form, raw()), 200}, {post(form), 429}},
		"a body as text":      {{post(form, asText), 200}, {post(form, asText), 200}, {post(form), 429}},
		"in JSON":             {{post(`{"client_id":"shop","grant_type":"client_credentials"}`, with("content-type", "application/json")), 200}, {post(form), 200}, {post(form), 429}},
		"a user":              {{post("client_id=shop&grant_type=password&username=ada"), 200}, {post("client_id=shop&grant_type=password&username=+ada"), 200}, {post("client_id=shop&grant_type=password&username=ada"), 429}, {post("client_id=shop&grant_type=password&username=bob"), 200}},
		"whom nobody knows":   {{post("client_id=shop&grant_type=refresh_token&refresh_token=r"), 200}, {post("client_id=shop&grant_type=refresh_token&refresh_token=r"), 200}, {post("client_id=shop&grant_type=refresh_token&refresh_token=r"), 200}, {post("client_id=shop&grant_type=refresh_token&refresh_token=r"), 429}},
		"no client":           {{post("grant_type=client_credentials"), 200}, {post("", at("GET", "/oauth2/token")), 200}, {post("", at("OPTIONS", "/oauth2/token")), 200}},
		"by another method":   {{post(form, at("OPTIONS", "/oauth2/token")), 200}, {post(form, at("TRACE", "/oauth2/token")), 200}, {post(form, at("OPTIONS", "/oauth2/token")), 429}, {post("", at("OPTIONS", "/oauth2/token?"+form)), 400}},
		"two lengths":         {{post(form, with("content-length", "44")), 200}, {post(form, raw("content-length", "44", "content-length", "45")), 400}},
		"without the body":    {{post("", with("content-length", "44"), with("authorization", basic("shop"))), 400}},
		"a part of the body":  {{post(form, with("x-envoy-auth-partial-body", "true")), 413}, {post(form, raw("x-envoy-auth-partial-body", "true")), 413}},
		"too long":            {{post(form + "&x=" + strings.Repeat("x", gateway.MaxBody)), 413}},
		"two clients":         {{post(form, with("authorization", basic("other"))), 400}},
		"two Authorizations":  {{post("grant_type=client_credentials", with("authorization", "Bearer x,"+basic("shop"))), 400}, {post("grant_type=client_credentials", raw("authorization", "Bearer x", "authorization", basic("shop"))), 400}, {post("grant_type=client_credentials", raw("authorization", "Bearer x,"+basic("shop"))), 400}},
		"two types":           {{post(form, with("content-type", "application/x-www-form-urlencoded,application/json")), 400}, {post(form, raw("content-type", "application/json")), 400}},
		"twice":               {{post(form + "&client_id=shop"), 400}},
		"in the query":        {{post(form, at("POST", "/oauth2/token?client_id=shop")), 400}, {post("", at("GET", "/oauth2/token?client_id=shop")), 400}},
		"compressed":          {{post(form, with("content-encoding", "gzip")), 400}},
		"replaced bytes":      {{post("client_id=sh!p", asText), 400}, {post("client_id=sh%21p"), 200}},
		"both bodies":         {{post(form, func(r *httpRequest) { r.Body = form }), 400}},
		"a malformed path":    {{post(form, at("POST", "/%zz")), 400}, {post(form, at("POST", "")), 400}},
		"nothing but a shell": {{&authv3.CheckRequest{}, 400}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for i, c := range calls {
				if got := w.check(t, c.in); got.status != c.want {
					t.Errorf("call %d: status %d, want %d: %s", i+1, got.status, c.want, got.body)
				}
			}
		})
	}
}

// TestSourceOfAuthorization checks that address limits use the address of Envoy's peer, not an
// address in the request.
func TestSourceOfAuthorization(t *testing.T) {
	w := newWorld(t)
	for i, want := range []int{200, 200, 200, 429} {
		in := post("client_id=shop&grant_type=password&username="+string(rune('a'+i)), with("x-forwarded-for", "198.51.100."+string(rune('1'+i))))
		check.Equal(t, "status", w.check(t, in).status, want)
	}
	other := post("client_id=shop&grant_type=password&username=e")
	other.Attributes.Source.Address = &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/run/x"}}}
	check.Equal(t, "from a pipe", w.check(t, other).status, 200)
}

// TestTokenPaths checks that with token_path, requests for other paths pass, whatever they contain.
func TestTokenPaths(t *testing.T) {
	w := newWorld(t, func(o *gateway.Options) { o.TokenPaths = []string{"/realms/*/token"} })
	ambiguous := "client_id=shop&client_id=other"
	for path, want := range map[string]int{
		"/realms/a/token": 400, "/Realms/a/token;x?y=z": 400, "x:http://h/realms/a/token": 400, "/realms/a/userinfo": 200, "/": 200,
	} {
		check.Equal(t, path, w.check(t, post(ambiguous, at("POST", path))).status, want)
	}
	for path, want := range map[string]int{
		"/realms/a/token/x": 400, "/realms/a/token.json": 400, "/index.php/realms/a/token": 400, "/realms/a/token/introspect": 400,
	} {
		check.Equal(t, path, w.check(t, post("grant_type=x&"+ambiguous, at("POST", path))).status, want)
		check.Equal(t, path+" without a grant", w.check(t, post("token=t&"+ambiguous, at("POST", path))).status, 200)
		check.Equal(t, path+" by OPTIONS", w.check(t, post("grant_type=x&"+ambiguous, at("OPTIONS", path))).status, want)
	}
	part := with("x-envoy-auth-partial-body", "true")
	check.Equal(t, "the beginning of a body near a token endpoint", w.check(t, post("x", at("POST", "/realms/a/token/x"), part)).status, 413)
	check.Equal(t, "an upload", w.check(t, post("x", at("POST", "/upload"), part)).status, 200)
	check.Equal(t, "requests", w.decider.Stats().Requests, [gateway.Outcomes]uint64{gateway.Refused: 12})
}

// TestAuthorizationAnswer checks that both answers have the limit fields, and that a denial
// contains the answer for the client.
func TestAuthorizationAnswer(t *testing.T) {
	w, in, names := newWorld(t), post("client_id=shop&grant_type=client_credentials"), ratelimit.Fields()
	passed := w.check(t, in)
	check.Equal(t, "fields", len(passed.fields), 3)
	check.Equal(t, "for scripts", passed.fields["Access-Control-Expose-Headers"], names.Limit+", "+names.Policy)
	check.Equal(t, "RateLimit is set", passed.fields[names.Limit] != "" && passed.fields[names.Policy] != "", true)
	w.check(t, in)
	denied := w.check(t, in)
	check.Equal(t, "type", denied.fields["Content-Type"], "application/json")
	check.Equal(t, "cache", denied.fields["Cache-Control"], "no-store")
	check.Equal(t, "Retry-After is set", denied.fields["Retry-After"] != "", true)
	check.Equal(t, "RateLimit is set", denied.fields[names.Limit] != "" && denied.fields[names.Policy] != "", true)
	check.Equal(t, "number of fields", len(denied.fields), 8)
	check.Equal(t, "scripts of", denied.fields["Access-Control-Allow-Origin"], "*")
	for _, from := range []func(*httpRequest){with("origin", "https://app.example"), raw("origin", "https://app.example")} {
		denied = w.check(t, post("client_id=shop&grant_type=client_credentials", from))
		check.Equal(t, "scripts of", denied.fields["Access-Control-Allow-Origin"], "https://app.example")
		check.Equal(t, "with cookies", denied.fields["Access-Control-Allow-Credentials"], "true")
		check.Equal(t, "Vary", denied.fields["Vary"], "Origin")
		check.Equal(t, "Retry-After is exposed", strings.HasPrefix(denied.fields["Access-Control-Expose-Headers"], "Retry-After, "), true)
	}
	check.Equal(t, "body", strings.Contains(denied.body, `"error":"temporarily_unavailable"`), true)
}
