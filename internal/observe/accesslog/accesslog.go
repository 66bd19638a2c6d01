// Package accesslog is the per-request code that the client and operator servers share: the request
// ID, the sender's address and the access log line.
package accesslog

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Line is the access log entry of one request.
type Line struct {
	Route    string // as registered; empty if no route matches
	Status   int
	Bytes    int64 // of the response body
	Started  time.Time
	Remote   netip.Addr
	Grant    string // grant_type of a token request, as sent
	ClientID string // empty if unknown
	Error    string // error code of the response; empty if none
	NoUser   bool   // the request is for a user, but the user is unknown
	Gone     bool   // the client disconnected before the response
	Probe    bool   // a health check: logged at debug level unless it fails
	Busy     bool   // rejected with a Retry-After
	Shed     string // the overloaded resource that made the server shed this request; empty if not shed
}

// Write logs the line, at error level if the server failed. It logs the route, never the query,
// body or headers, because those contain codes, states and secrets.
func (l *Line) Write(log *slog.Logger, r *http.Request) {
	ctx, level := r.Context(), slog.LevelInfo
	switch {
	case l.Status >= http.StatusInternalServerError:
		level = LevelOfFailure(ctx, l.Busy)
	case l.Probe:
		level = slog.LevelDebug
	}
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 16),
		slog.String("method", plain(r.Method)),
		slog.String("path", Path(l.Route, r)),
		slog.Int("status", l.Status),
		slog.Int64("bytes", l.Bytes),
		slog.Float64("duration_ms", float64(time.Since(l.Started).Microseconds())/1000),
		slog.String("remote", l.Remote.String()),
	)
	if l.Grant != "" {
		attrs = append(attrs, slog.String("grant_type", plain(l.Grant)))
	}
	if l.ClientID != "" {
		attrs = append(attrs, slog.String("client_id", l.ClientID))
	}
	if l.Error != "" {
		attrs = append(attrs, slog.String("error", l.Error))
	}
	if l.Shed != "" {
		attrs = append(attrs, slog.String("shed", l.Shed))
	}
	if l.NoUser {
		attrs = append(attrs, slog.String("user", "unknown"))
	}
	if l.Gone {
		attrs = append(attrs, slog.Bool("gone", true))
	}
	if req := of(ctx); req != nil {
		attrs = req.denial.attrs(attrs)
	}
	line := slog.NewRecord(time.Now(), level, "request", 0) // finding the caller would take a tenth of the time
	line.AddAttrs(attrs...)
	_ = log.Handler().Handle(ctx, line) // like a [slog.Logger]; the handler counts the lines it loses
}

// LevelOfFailure returns the level for logging that the server failed to answer. A caller that
// disconnected is the likely cause of its own failure, and a busy server may reject many requests.
// No operator has to act on either.
func LevelOfFailure(ctx context.Context, busy bool) slog.Level {
	if busy || ctx.Err() != nil {
		return slog.LevelInfo
	}
	return slog.LevelError
}

// Path returns the route as registered. For an unregistered path, such as every upstream path of a
// gateway, it returns the first 128 bytes of the request path.
func Path(route string, r *http.Request) string {
	if route != "" {
		return route
	}
	return shortened(r.URL.Path, 128)
}

func plain(s string) string { return shortened(s, 40) }

// shortened returns the first bytes of text from a request, without characters that are unsafe
// in a log.
func shortened(s string, most int) string {
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, s)
}

// Peer returns the remote address of the connection, without port and zone; zero without one
// (a Unix socket).
func Peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}
