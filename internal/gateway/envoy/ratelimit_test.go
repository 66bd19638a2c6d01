package envoy_test

import (
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway"
	"oauth-server/internal/ratelimit"
)

const shop = "client_id=shop,grant_type=client_credentials"

// descriptors parses descriptors of the form key=value,key=value.
func descriptors(texts ...string) (all []*descriptorv3.RateLimitDescriptor) {
	for _, text := range texts {
		d := &descriptorv3.RateLimitDescriptor{}
		for entry := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(entry, "=")
			d.Entries = append(d.Entries, &descriptorv3.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		all = append(all, d)
	}
	return all
}

// hits returns a descriptor that counts as n requests.
func hits(text string, n uint64) *descriptorv3.RateLimitDescriptor {
	d := descriptors(text)[0]
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

func (w *world) should(t *testing.T, in *ratelimitv3.RateLimitRequest) *ratelimitv3.RateLimitResponse {
	t.Helper()
	out, err := w.limits.ShouldRateLimit(t.Context(), in)
	check.OK(t, err)
	return out
}

// codesOf returns the overall code and the codes of the descriptors: o for OK, x for OVER_LIMIT.
func codesOf(out *ratelimitv3.RateLimitResponse) string {
	letter := map[ratelimitv3.RateLimitResponse_Code]string{ratelimitv3.RateLimitResponse_OK: "o", ratelimitv3.RateLimitResponse_OVER_LIMIT: "x"}
	text := letter[out.GetOverallCode()] + ":"
	for _, st := range out.GetStatuses() {
		text += letter[st.GetCode()]
	}
	return text
}

func TestRateLimits(t *testing.T) {
	type call struct {
		all  []*descriptorv3.RateLimitDescriptor
		hits uint32
		want string
	}
	one := func(text, want string) call { return call{all: descriptors(text), want: want} }
	for name, calls := range map[string][]call{
		"a client": {one(shop, "o:o"), one(shop, "o:o"), one(shop, "x:x"), one("client_id=other,grant_type=client_credentials", "o:o")},
		"a user": {
			one("client_id=shop,user=ada", "o:o"), one("client_id=shop,user=ada,grant_type=refresh_token", "o:o"),
			one("client_id=shop,user=ada", "x:x"), one("client_id=shop,user=bob", "o:o"),
		},
		"a user who is not known counts for the total": {
			one("client_id=shop", "o:o"), one("client_id=shop", "o:o"), one("client_id=shop", "o:o"), one("client_id=shop,remote_address=192.0.2.1", "o:o"),
			one("client_id=shop,remote_address=192.0.2.2", "x:x"),
		},
		"an address": {
			one("client_id=shop,user=a,remote_address=192.0.2.1", "o:o"), one("client_id=shop,user=b,remote_address=192.0.2.1", "o:o"),
			one("client_id=shop,user=c,remote_address=::ffff:192.0.2.1", "o:o"), one("client_id=shop,user=d,remote_address=192.0.2.1", "x:x"),
			one("client_id=shop,user=d,remote_address=192.0.2.2", "o:o"),
		},
		"no client":   {one("generic_key=a", "o:o"), one("client_id=", "o:o"), one("user=ada", "o:o"), {want: "o:"}},
		"other keys":  {one("generic_key=a,"+shop, "o:o"), one(shop+",generic_key=b", "o:o"), one(shop, "x:x")},
		"one is over": {one(shop, "o:o"), one(shop, "o:o"), {all: descriptors("client_id=other,user=a", shop), want: "x:ox"}, {all: []*descriptorv3.RateLimitDescriptor{hits("client_id=other,user=a", 2)}, want: "o:o"}},
		"hits of the request": {
			{all: descriptors(shop), hits: 3, want: "x:x"}, {all: descriptors(shop), hits: 2, want: "o:o"}, one(shop, "x:x"),
		},
		"hits of the descriptor come first": {
			{all: []*descriptorv3.RateLimitDescriptor{hits(shop, 1)}, hits: 90, want: "o:o"},
			{all: []*descriptorv3.RateLimitDescriptor{hits(shop, 0)}, hits: 90, want: "o:o"},
			one(shop, "o:o"),
			{all: []*descriptorv3.RateLimitDescriptor{hits(shop, 0)}, want: "x:x"},
		},
		"hits that give back count nothing": {
			one(shop, "o:o"), one(shop, "o:o"),
			{all: []*descriptorv3.RateLimitDescriptor{{Entries: descriptors(shop)[0].Entries, HitsAddend: wrapperspb.UInt64(2), IsNegativeHits: true}}, want: "x:x"},
		},
		"refused": {
			one("client_id="+strings.Repeat("x", 256), "x:x"), one("client_id=shop,user= total", "x:x"), one("client_id=shop,remote_address=here", "x:x"),
			one("client_id=shop,client_id=other", "x:x"),
			{all: descriptors(shop), hits: 101, want: "x:x"},
			{all: []*descriptorv3.RateLimitDescriptor{hits(shop, 1<<63)}, want: "x:x"},
			{all: descriptors(shop, "client_id=other"), hits: 60, want: "x:xx"},
			{all: descriptors(strings.Split(strings.Repeat("generic_key=a ", 17), " ")[:17]...), want: "x:" + strings.Repeat("x", 17)},
			one(shop, "o:o"), one(shop, "o:o"), one(shop, "x:x"), // nothing of it was counted
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for i, c := range calls {
				if got := codesOf(w.should(t, &ratelimitv3.RateLimitRequest{Domain: "any", Descriptors: c.all, HitsAddend: c.hits})); got != c.want {
					t.Errorf("call %d: %s, want %s", i+1, got, c.want)
				}
			}
		})
	}
}

func headersOf(all []*corev3.HeaderValue) map[string]string {
	m := map[string]string{}
	for _, h := range all {
		m[h.GetKey()] += h.GetValue()
	}
	return m
}

// TestRateLimitAnswer checks the state of the limit and the answer for the client.
func TestRateLimitAnswer(t *testing.T) {
	w, in, names := newWorld(t), &ratelimitv3.RateLimitRequest{Descriptors: descriptors(shop)}, ratelimit.Fields()
	passed := w.should(t, in)
	st := passed.GetStatuses()[0]
	check.Equal(t, "limit", st.GetCurrentLimit().GetName(), "own")
	check.Equal(t, "requests per unit", st.GetCurrentLimit().GetRequestsPerUnit(), 2)
	check.Equal(t, "unit", st.GetCurrentLimit().GetUnit(), ratelimitv3.RateLimitResponse_RateLimit_HOUR)
	check.Equal(t, "multiplier", st.GetCurrentLimit().GetUnitMultiplier() == nil, true)
	check.Equal(t, "remaining", st.GetLimitRemaining(), 1)
	check.Equal(t, "until reset", st.GetDurationUntilReset().AsDuration() > time.Minute, true)
	check.Equal(t, "body", len(passed.GetRawBody()), 0)
	check.Equal(t, "fields", len(passed.GetResponseHeadersToAdd()), 3)
	check.Equal(t, "for scripts", headersOf(passed.GetResponseHeadersToAdd())["Access-Control-Expose-Headers"], names.Limit+", "+names.Policy)
	check.Equal(t, names.Policy, strings.Contains(headersOf(passed.GetResponseHeadersToAdd())[names.Policy], `q=2;w=3600`), true)
	w.should(t, in)
	denied := w.should(t, in)
	fields := headersOf(denied.GetResponseHeadersToAdd())
	check.Equal(t, "type", fields["Content-Type"], "application/json")
	check.Equal(t, "cache", fields["Cache-Control"], "no-store")
	check.Equal(t, "Retry-After is set", fields["Retry-After"] != "", true)
	check.Equal(t, "RateLimit is set", fields[names.Limit] != "" && fields[names.Policy] != "", true)
	check.Equal(t, "number of fields", len(fields), 8)
	check.Equal(t, "scripts of", fields["Access-Control-Allow-Origin"], "*") // the service does not receive the origin
	check.Equal(t, "Retry-After is exposed", strings.HasPrefix(fields["Access-Control-Expose-Headers"], "Retry-After, "), true)
	check.Equal(t, "body", strings.Contains(string(denied.GetRawBody()), `"error":"temporarily_unavailable"`), true)
	check.Equal(t, "remaining", denied.GetStatuses()[0].GetLimitRemaining(), 0)
	both := w.should(t, &ratelimitv3.RateLimitRequest{Descriptors: descriptors(shop, "client_id=other,user=ada")})
	check.Equal(t, "what was given back is left", both.GetStatuses()[1].GetLimitRemaining(), 2)
	refused := w.should(t, &ratelimitv3.RateLimitRequest{Descriptors: descriptors("client_id=shop,user= ")})
	check.Equal(t, "refused", strings.Contains(string(refused.GetRawBody()), `"error":"invalid_request"`), true)
}

// TestHiddenLimits checks that limits hidden by operators do not appear in a status either.
func TestHiddenLimits(t *testing.T) {
	w := newWorld(t, func(o *gateway.Options) { hide(t, o) })
	for range 3 {
		out := w.should(t, &ratelimitv3.RateLimitRequest{Descriptors: descriptors(shop)})
		st := out.GetStatuses()[0]
		if st.GetCurrentLimit() != nil || st.GetLimitRemaining() != 0 || st.GetDurationUntilReset() != nil {
			t.Errorf("status %v", st)
		}
		for name := range headersOf(out.GetResponseHeadersToAdd()) {
			check.Equal(t, "a field of "+name, strings.HasPrefix(name, "RateLimit"), false)
		}
	}
}
