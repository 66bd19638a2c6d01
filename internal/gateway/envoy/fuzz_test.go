package envoy_test

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/envoy"
)

// FuzzAuthorization checks that every valid message has an answer that Envoy accepts, and that none
// is a defect. Two requests with the same bytes and header are read in the same way, in either form
// of the header.
func FuzzAuthorization(f *testing.F) {
	f.Add("/oauth2/token", "application/x-www-form-urlencoded", "", []byte("client_id=shop&grant_type=client_credentials"))
	f.Add("/oauth2/token?a=b", "application/json", basic("shop"), []byte(`{"client_id":"shop"}`))
	f.Add("/%zz", "text/plain", "Bearer x, Basic y", []byte("!"))
	j := newDecider(f)
	auth, _ := envoy.Services(j)
	f.Fuzz(func(t *testing.T, path, kind, authorization string, body []byte) {
		joined := post(string(body), at("POST", path), with("content-type", kind), with("authorization", authorization))
		apart := proto.CloneOf(joined)
		raw()(apart.GetAttributes().GetRequest().GetHttp())
		ways := map[bool]bool{}
		for _, in := range []*authv3.CheckRequest{joined, apart} {
			if _, err := proto.Marshal(in); err != nil {
				return // text that is not UTF-8, which no message contains
			}
			out, err := auth.Check(t.Context(), in)
			wantAnswer(t, out, err)
			switch status := out.GetDeniedResponse().GetStatus().GetCode(); status {
			case typev3.StatusCode_Empty, typev3.StatusCode_TooManyRequests:
				ways[true] = true
			case typev3.StatusCode_BadRequest, typev3.StatusCode_PayloadTooLarge:
				ways[false] = true
			default:
				t.Errorf("status %v", status)
			}
		}
		check.Equal(t, "ways to read it", len(ways), 1)
		check.Equal(t, "defects", j.Stats().Defects, 0)
	})
}

// wantAnswer checks that Envoy accepts an answer and that it can be sent.
func wantAnswer(t *testing.T, out interface {
	proto.Message
	ValidateAll() error
}, err error,
) {
	t.Helper()
	check.OK(t, err)
	check.OK(t, out.ValidateAll())
	_, err = proto.Marshal(out)
	check.OK(t, err)
}

// FuzzMessages is like FuzzAuthorization, with arbitrary messages to both services.
func FuzzMessages(f *testing.F) {
	for _, m := range []proto.Message{
		post("client_id=shop", raw()), &ratelimitv3.RateLimitRequest{Descriptors: descriptors(shop, "user=x"), HitsAddend: 7},
		&authv3.CheckRequest{Attributes: &authv3.AttributeContext{Source: &authv3.AttributeContext_Peer{Address: &corev3.Address{}}}},
	} {
		raw, err := proto.Marshal(m)
		check.OK(f, err)
		f.Add(raw)
	}
	j := newDecider(f)
	auth, limits := envoy.Services(j)
	f.Fuzz(func(t *testing.T, raw []byte) {
		if in := (&authv3.CheckRequest{}); proto.Unmarshal(raw, in) == nil {
			out, err := auth.Check(t.Context(), in)
			wantAnswer(t, out, err)
		}
		if in := (&ratelimitv3.RateLimitRequest{}); proto.Unmarshal(raw, in) == nil {
			out, err := limits.ShouldRateLimit(t.Context(), in)
			wantAnswer(t, out, err)
			check.Equal(t, "statuses", len(out.GetStatuses()), len(in.GetDescriptors()))
		}
		check.Equal(t, "defects", j.Stats().Defects, 0)
	})
}
