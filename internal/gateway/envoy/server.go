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
	// maxMessage fits a token request of [gateway.MaxBody], Envoy's default maximum header of 60
	// KiB in both of its forms, and Envoy's own attributes.
	maxMessage = 256 << 10
	// maxHeader bounds the metadata of one call.
	maxHeader = 16 << 10
	// maxStreams bounds the concurrent calls on one connection. Envoy opens one connection for each
	// of its threads.
	maxStreams = 1024
	// window bounds the unread data of a connection. A larger call gets more window while it is
	// read.
	window = 64 << 10
	// callTimeout bounds the time of a call, including receiving it and waiting for a slot.
	callTimeout = 30 * time.Second
	// handshakeTimeout bounds the time to set up a connection.
	handshakeTimeout = 5 * time.Second
)

// Server serves both protocols and the gRPC health check (grpc.health.v1). It is safe for
// concurrent use.
type Server struct {
	grpc   *grpc.Server
	health *health.Server
}

// NewServer returns a Server for the decider. With a nil config it speaks plaintext HTTP/2.
func NewServer(decider *gateway.Decider, config *tls.Config) *Server {
	o := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeader), grpc.MaxConcurrentStreams(maxStreams),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(4 * window), grpc.InTapHandle(timed),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: 15 * time.Minute, Time: time.Minute, Timeout: 20 * time.Second}),
		grpc.UnaryInterceptor(recovering(decider)),
	}
	if config != nil {
		o = append(o, grpc.Creds(credentials.NewTLS(config)))
	}
	s := &Server{grpc: grpc.NewServer(o...), health: health.NewServer()}
	ratelimitv3.RegisterRateLimitServiceServer(s.grpc, &rateLimits{decider: decider})
	authv3.RegisterAuthorizationServer(s.grpc, &authorization{decider: decider})
	healthv1.RegisterHealthServer(s.grpc, s.health)
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	return s
}

// Serve answers calls on l until [Server.Shutdown], and closes l. It then returns nil.
func (s *Server) Serve(l net.Listener) error { return s.grpc.Serve(l) }

// Retire makes health checks fail from now on, so Envoy switches to another instance. Calls are
// still answered.
func (s *Server) Retire() { s.health.Shutdown() }

// Shutdown rejects new calls and waits for running calls. When ctx ends, it cancels them and
// returns the error of ctx.
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
		s.grpc.Stop() // GracefulStop waits for the last handler, and its context has ended now
		return ctx.Err()
	}
}

// timed sets the timeout of a call at its start, before its message is received. Health watches
// have no timeout.
func timed(ctx context.Context, info *tap.Info) (context.Context, error) {
	if info.FullMethodName == healthv1.Health_Watch_FullMethodName {
		return ctx, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	context.AfterFunc(ctx, cancel) // ends with the context of the call
	return ctx, nil
}

// recovering turns a panic outside of [gateway.Decider.Ask] into an error of the call, so the process
// survives. Envoy's failure mode then decides about the request.
func recovering(decider *gateway.Decider) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (out any, err error) {
		defer func() {
			if panicked := recover(); panicked != nil {
				decider.Defect(ctx, panicked)
				out, err = nil, status.Error(codes.Internal, "the request could not be checked")
			}
		}()
		return handler(ctx, in)
	}
}
