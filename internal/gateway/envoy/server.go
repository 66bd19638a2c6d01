package envoy

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"oauth-server/internal/gateway"
)

const (
	// maxMessage has room for a token request of [gateway.MaxBody], for the largest header that Envoy accepts by default,
	// 60 KiB, in both of its forms, and for what Envoy adds.
	maxMessage = 256 << 10
	// maxHeader bounds the metadata of one call.
	maxHeader = 16 << 10
	// maxStreams bounds the calls under way on one connection, of which Envoy has one for each of its threads.
	maxStreams = 1024
	// window bounds what a connection has sent and is not read yet. A call may need more, and gets it as it is read.
	window = 64 << 10
	// callTimeout is how long a call may take: to come in, and to wait for its turn.
	callTimeout = 30 * time.Second
	// handshakeTimeout is how long a connection may take to begin.
	handshakeTimeout = 5 * time.Second
)

// Server serves both protocols and the health check of gRPC (grpc.health.v1). It is safe for concurrent use.
type Server struct {
	grpc   *grpc.Server
	health *health.Server
}

// NewServer makes a Server that asks the judge. With a nil config it speaks plain HTTP/2.
func NewServer(judge *gateway.Judge, config *tls.Config) *Server {
	o := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeader), grpc.MaxConcurrentStreams(maxStreams),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(4 * window), grpc.InTapHandle(timed),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 15 * time.Minute, Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.UnaryInterceptor(recovering(judge)),
	}
	if config != nil {
		o = append(o, grpc.Creds(credentials.NewTLS(config)))
	}
	s := &Server{grpc: grpc.NewServer(o...), health: health.NewServer()}
	ratelimitv3.RegisterRateLimitServiceServer(s.grpc, &rateLimits{judge: judge})
	authv3.RegisterAuthorizationServer(s.grpc, &authorization{judge: judge})
	healthv1.RegisterHealthServer(s.grpc, s.health)
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	return s
}

// Serve answers on l until [Server.Shutdown], and closes l. It returns nil then.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Retire has health checks fail from now on, so that Envoy asks another instance. Calls are answered as before.
func (s *Server) Retire() { s.health.Shutdown() }

// Shutdown takes no new calls and waits for those under way. When ctx ends it cuts them off, and returns its error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Retire()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.grpc.GracefulStop()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.grpc.Stop() // GracefulStop ends with the last handler, whose context has ended now
		return ctx.Err()
	}
}

// timed bounds the time of a call from its beginning, before its message has come in. A watch of the health is no such call.
func timed(ctx context.Context, info *tap.Info) (context.Context, error) {
	if info.FullMethodName == healthv1.Health_Watch_FullMethodName {
		return ctx, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	context.AfterFunc(ctx, cancel) // it ends with that of the call
	return ctx, nil
}

// recovering has a panic outside of [gateway.Judge.Ask] end the call, and not the process. Envoy's failure mode then says
// what becomes of the request.
func recovering(judge *gateway.Judge) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (out any, err error) {
		defer func() {
			if panicked := recover(); panicked != nil {
				judge.Defect(ctx, panicked)
				out, err = nil, status.Error(codes.Internal, "the request could not be judged")
			}
		}()
		return handler(ctx, in)
	}
}
