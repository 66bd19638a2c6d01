package envoy

import (
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"oauth-server/internal/gateway"
)

// Services returns both services without a server.
func Services(j *gateway.Decider) (authv3.AuthorizationServer, ratelimitv3.RateLimitServiceServer) {
	return &authorization{decider: j}, &rateLimits{decider: j}
}

// Recovering returns the interceptor.
func Recovering(j *gateway.Decider) grpc.UnaryServerInterceptor { return recovering(j) }
