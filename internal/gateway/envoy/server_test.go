package envoy_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/gateway"
	"oauth-server/internal/gateway/envoy"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a decider behind both protocols. It admits two requests an hour for each user and each
// client, four for a client in total, and three from one address.
type world struct {
	decider *gateway.Decider
	server  *envoy.Server
	limits  ratelimitv3.RateLimitServiceClient
	auth    authv3.AuthorizationClient
	health  healthv1.HealthClient
}

func limitsOf(name string, n int64) []ratelimit.Limit {
	return []ratelimit.Limit{ratelimit.NewLimit(name, n, time.Hour)}
}

func newDecider(tb testing.TB, edits ...func(*gateway.Options)) *gateway.Decider {
	tb.Helper()
	settings := ratelimit.DefaultSettings()
	settings.Default = ratelimit.Policy{User: limitsOf("own", 2), Client: limitsOf("own", 2), Total: limitsOf("total", 4), Source: limitsOf("source", 3)}
	policies := testworld.Policies(tb, settings, clientcfg.PolicySet{})
	o := gateway.Options{
		Limiter: limiter.New(limiter.Options{
			Counters: counting.NewCounters(0), Clock: func() time.Time { return time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC) },
			Policies: func() limiter.Policies { return policies },
		}),
		ClientAddr: func(*http.Request) (netip.Addr, bool) { return netip.Addr{}, false },
	}
	for _, edit := range edits {
		edit(&o)
	}
	j, err := gateway.NewDecider(o)
	check.OK(tb, err)
	return j
}

func newWorld(tb testing.TB, edits ...func(*gateway.Options)) *world {
	tb.Helper()
	w := &world{decider: newDecider(tb, edits...)}
	w.server = envoy.NewServer(w.decider, nil)
	pipe, ended := bufconn.Listen(1<<20), make(chan error, 1)
	go func() { ended <- w.server.Serve(pipe) }()
	conn, err := grpc.NewClient("passthrough:///judge", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	check.OK(tb, err)
	tb.Cleanup(func() {
		check.OK(tb, conn.Close())
		check.OK(tb, w.server.Shutdown(context.Background()))
		check.OK(tb, <-ended)
	})
	w.limits, w.auth, w.health = ratelimitv3.NewRateLimitServiceClient(conn), authv3.NewAuthorizationClient(conn), healthv1.NewHealthClient(conn)
	return w
}

func broken(on gateway.OnError) func(*gateway.Options) {
	return func(o *gateway.Options) {
		o.OnError = on
		o.Limiter.Policies = func() limiter.Policies { panic("a defect") }
	}
}

// TestDefects checks that on_error decides about a request that could not be checked, in both
// protocols.
func TestDefects(t *testing.T) {
	for _, tc := range []struct {
		on    gateway.OnError
		limit ratelimitv3.RateLimitResponse_Code
		auth  int
	}{
		{gateway.Allow, ratelimitv3.RateLimitResponse_OK, 200},
		{gateway.Deny, ratelimitv3.RateLimitResponse_OVER_LIMIT, 503},
	} {
		w := newWorld(t, broken(tc.on))
		limited := w.should(t, &ratelimitv3.RateLimitRequest{Descriptors: descriptors(shop)})
		check.Equal(t, "rate limit, on_error "+string(tc.on), limited.GetOverallCode(), tc.limit)
		check.Equal(t, "its statuses", len(limited.GetStatuses()), 1)
		authorized := w.check(t, post("client_id=shop&grant_type=client_credentials"))
		check.Equal(t, "authorization, on_error "+string(tc.on), authorized.status, tc.auth)
		check.Equal(t, "defects", w.decider.Stats().Defects, 2)
	}
}

// TestStats checks that every token request is counted by its outcome.
func TestStats(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		w.check(t, post("client_id=shop&grant_type=client_credentials"))
	}
	w.should(t, &ratelimitv3.RateLimitRequest{Descriptors: descriptors("generic_key=x")})
	w.should(t, &ratelimitv3.RateLimitRequest{})
	w.check(t, post("client_id=shop&client_id=shop"))
	want := [gateway.Outcomes]uint64{gateway.Passed: 3, gateway.Denied: 1, gateway.Refused: 1}
	check.Equal(t, "requests", w.decider.Stats().Requests, want)
}

// TestHealth checks that each service is healthy until the server stops, and that calls are
// answered while it drains.
func TestHealth(t *testing.T) {
	w := newWorld(t)
	for _, want := range []healthv1.HealthCheckResponse_ServingStatus{healthv1.HealthCheckResponse_SERVING, healthv1.HealthCheckResponse_NOT_SERVING} {
		for _, service := range []string{"", "envoy.service.ratelimit.v3.RateLimitService", "envoy.service.auth.v3.Authorization"} {
			got, err := w.health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
			check.OK(t, err)
			check.Equal(t, "status of "+service, got.GetStatus(), want)
		}
		w.server.Retire()
		check.Equal(t, "call", w.check(t, post("client_id=shop&grant_type=client_credentials")).status, 200)
	}
}

// TestBounds checks that a message that is too large ends only its own call.
func TestBounds(t *testing.T) {
	w := newWorld(t)
	huge := post("client_id=shop")
	huge.Attributes.Request.Http.Headers["x"] = string(make([]byte, 300<<10))
	_, err := w.auth.Check(t.Context(), huge)
	check.Equal(t, "code", status.Code(err), codes.ResourceExhausted)
	check.Equal(t, "the next", w.check(t, post("client_id=shop")).status, 200)
}

// TestShutdownEndsInTime checks that a call that does not end is cut off when the time is over.
func TestShutdownEndsInTime(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(o *gateway.Options) {
		before := o.Limiter.Policies
		o.Limiter.Policies = func() limiter.Policies {
			close(asked)
			<-release
			return before()
		}
	})
	failed := make(chan error, 1)
	go func() {
		_, err := w.auth.Check(context.Background(), post("client_id=shop"))
		failed <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Equal(t, "error", w.server.Shutdown(ctx), context.Canceled)
	check.Equal(t, "code", status.Code(<-failed), codes.Unavailable)
	close(release)
}

// hide hides the limits from clients.
func hide(t *testing.T, o *gateway.Options) {
	t.Helper()
	settings := ratelimit.DefaultSettings()
	settings.Default = ratelimit.Policy{User: limitsOf("own", 2), Client: limitsOf("own", 2), HideHeaders: new(true)}
	policies := testworld.Policies(t, settings, clientcfg.PolicySet{})
	o.Limiter.Policies = func() limiter.Policies { return policies }
}

// TestPanics checks that a panic outside of a decision ends its call and counts as a defect.
func TestPanics(t *testing.T) {
	j := newDecider(t)
	_, err := envoy.Recovering(j)(t.Context(), nil, nil, func(context.Context, any) (any, error) { panic("a defect") })
	check.Equal(t, "code", status.Code(err), codes.Internal)
	check.Equal(t, "defects", j.Stats().Defects, 1)
}
