package envoy

import (
	"context"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"oauth-server/internal/gateway"
	"oauth-server/internal/gateway/tokenrequest"
	"oauth-server/internal/ratelimit"
)

const (
	// maxDescriptors bounds the descriptors of one call. maxHits bounds the sum of their hits.
	maxDescriptors = 16
	maxHits        = 100
)

// The descriptor keys that are read. Other keys are ignored.
const (
	KeyClient  = "client_id"
	KeyUser    = "user"
	KeyGrant   = "grant_type"
	KeyAddress = "remote_address" // set by Envoy's remote_address action
)

// rateLimits implements the rate limit service. It answers OK or OVER_LIMIT. If the decider refuses a
// request for another reason, it also answers OVER_LIMIT, with the reason as the body, because
// Envoy lets the request pass after a gRPC error.
type rateLimits struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	decider *gateway.Decider
}

// ShouldRateLimit implements [ratelimitv3.RateLimitServiceServer]. The domain is ignored.
func (s *rateLimits) ShouldRateLimit(ctx context.Context, in *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	call := callOf(ctx, http.MethodPost, ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName, "")
	answer := s.decider.Ask(call, func() ([]gateway.Question, error) { return questions(in) })
	out := &ratelimitv3.RateLimitResponse{OverallCode: ratelimitv3.RateLimitResponse_OK}
	if answer.Status != http.StatusOK {
		out.OverallCode, out.RawBody = ratelimitv3.RateLimitResponse_OVER_LIMIT, answer.Body
	}
	for name, values := range answer.Header {
		for _, value := range values {
			out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, &corev3.HeaderValue{Key: name, Value: value})
		}
	}
	for i := range in.GetDescriptors() {
		st := &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: out.OverallCode}
		if answer.Asked != nil {
			st = statusOf(&answer.Asked[i], answer.Status == http.StatusOK)
		}
		out.Statuses = append(out.Statuses, st)
	}
	return out, nil
}

// callOf returns a request that represents the call in the log.
func callOf(ctx context.Context, method, path, id string) *http.Request {
	r := &http.Request{Method: method, URL: &url.URL{Path: path}, Header: http.Header{}}
	if id != "" {
		r.Header.Set("X-Request-Id", id)
	}
	return r.WithContext(ctx)
}

// questions returns one question for each descriptor.
func questions(in *ratelimitv3.RateLimitRequest) ([]gateway.Question, error) {
	descriptors := in.GetDescriptors()
	if len(descriptors) > maxDescriptors {
		return nil, refuse("The proxy sends more than 16 descriptors.")
	}
	all, left := make([]gateway.Question, 0, len(descriptors)), uint64(maxHits)
	for _, d := range descriptors {
		q, err := readDescriptor(d)
		if err != nil {
			return nil, err
		}
		if q.ClientID != "" {
			hits := hitsOf(in, d)
			if hits > left {
				return nil, refuse("The request has more than 100 hits.")
			}
			left -= hits
			q.Hits = int(hits) //nolint:gosec // at most maxHits
		}
		all = append(all, q)
	}
	return all, nil
}

// hitsOf returns how many requests the descriptor counts as: its own hits_addend, which may be 0,
// or else the hits_addend of the request, where 0 means 1. Negative hits, which would cancel
// earlier hits, are not supported and count as 0.
func hitsOf(in *ratelimitv3.RateLimitRequest, d *descriptorv3.RateLimitDescriptor) uint64 {
	switch {
	case d.GetIsNegativeHits():
		return 0
	case d.GetHitsAddend() != nil:
		return d.GetHitsAddend().GetValue()
	}
	return max(1, uint64(in.GetHitsAddend()))
}

// readDescriptor reads the entries of a descriptor. A descriptor without a client yields an empty
// question.
func readDescriptor(d *descriptorv3.RateLimitDescriptor) (q gateway.Question, err error) {
	values := map[string]string{}
	for _, e := range d.GetEntries() {
		switch key := e.GetKey(); key {
		case KeyClient, KeyUser, KeyGrant, KeyAddress:
			if before, twice := values[key]; twice && before != e.GetValue() {
				return q, refuse("The proxy sends two values of the same entry.")
			}
			values[key] = e.GetValue()
		}
	}
	q = gateway.Question{ClientID: values[KeyClient], User: values[KeyUser], Grant: values[KeyGrant]}
	if q.ClientID == "" {
		return gateway.Question{}, nil
	}
	if text := values[KeyAddress]; text != "" {
		if q.Remote, err = gateway.ParseAddress(text); err != nil {
			return q, err
		}
	}
	return q, q.Check()
}

// statusOf returns the status of a descriptor. If its hits were canceled because another descriptor
// is over its limit, they are added to the remaining requests again.
func statusOf(q *gateway.Question, counted bool) *ratelimitv3.RateLimitResponse_DescriptorStatus {
	st := &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: ratelimitv3.RateLimitResponse_OK}
	if q.Decision.Rejected() {
		st.Code = ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	binding, limited := q.Decision.BindingLimit()
	if shown, _ := q.Decision.Headers(); !limited || shown == "" { // operators can hide the fields
		return st
	}
	left := binding.Remaining
	if !counted && !q.Decision.Rejected() {
		left += int64(q.Hits)
	}
	st.CurrentLimit, st.LimitRemaining = limitOf(&binding.Limit), clamp(left)
	st.DurationUntilReset = durationpb.New(binding.Reset)
	return st
}

// units are the protocol's units of fixed length, longest first.
var units = []struct {
	length time.Duration
	unit   ratelimitv3.RateLimitResponse_RateLimit_Unit
}{
	{7 * 24 * time.Hour, ratelimitv3.RateLimitResponse_RateLimit_WEEK},
	{24 * time.Hour, ratelimitv3.RateLimitResponse_RateLimit_DAY},
	{time.Hour, ratelimitv3.RateLimitResponse_RateLimit_HOUR},
	{time.Minute, ratelimitv3.RateLimitResponse_RateLimit_MINUTE},
	{time.Second, ratelimitv3.RateLimitResponse_RateLimit_SECOND},
}

// limitOf returns a limit in the longest unit that divides its window. It returns nil if no unit
// does, for a window of milliseconds.
func limitOf(l *ratelimit.Limit) *ratelimitv3.RateLimitResponse_RateLimit {
	for _, u := range units {
		if l.Window%u.length != 0 {
			continue
		}
		out := &ratelimitv3.RateLimitResponse_RateLimit{Name: l.Name, RequestsPerUnit: clamp(l.Requests), Unit: u.unit}
		if times := l.Window / u.length; times > 1 {
			out.UnitMultiplier = wrapperspb.UInt32(clamp(int64(times)))
		}
		return out
	}
	return nil
}

// clamp limits n to the range of the protocol.
func clamp(n int64) uint32 {
	return uint32(min(max(n, 0), math.MaxUint32))
}

func refuse(description string) error { return &tokenrequest.Error{Description: description} }

// addressOf returns the IP address of a peer, or zero if the peer is not an IP address.
func addressOf(a *corev3.Address) netip.Addr {
	address, err := netip.ParseAddr(a.GetSocketAddress().GetAddress())
	if err != nil {
		return netip.Addr{} // a pipe or a name
	}
	return address.Unmap().WithZone("")
}
