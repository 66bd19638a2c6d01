// Package accesslog is what the servers for clients and for operators have in common about
// every request: its id, the address that sent it, and its line in the log.
package accesslog

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// Line is what the access log says of one request.
type Line struct {
	Route    string // as registered; empty if there is nothing at the address
	Status   int
	Bytes    int64 // of the body that was sent
	Started  time.Time
	Remote   netip.Addr
	Grant    string // grant_type of a token request, as it was sent
	ClientID string // empty if unknown
	Error    string // code of the error that was answered; empty if none
	NoUser   bool   // the request is for a user, and it is not known for whom
	Gone     bool   // the client hung up before it had an answer
	Probe    bool   // a health check: logged at debug level unless it fails
	Busy     bool   // turned away, with the time to try again
	Shed     string // what an overloaded server, which refused the request, had not enough of; empty: it did not
}

// Write writes the line, at error level if the server failed. It names the route, never the query,
// the body or a header: those hold codes, states and secrets.
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
	log.LogAttrs(ctx, level, "request", attrs...)
}

// LevelOfFailure is the level at which to log that the server failed to answer. If the caller hung
// up meanwhile, that is most likely the cause; and of those who were turned away, because the
// server is busy, there may be many. No operator has to act on any of them.
func LevelOfFailure(ctx context.Context, busy bool) slog.Level {
	if busy || ctx.Err() != nil {
		return slog.LevelInfo
	}
	return slog.LevelError
}

// Path is the route as registered. Of an unknown path, as are all of the upstream of a gateway, it is only the beginning.
func Path(route string, r *http.Request) string {
	if route != "" {
		return route
	}
	return shortened(r.URL.Path, 128)
}

func plain(s string) string { return shortened(s, 40) }

// shortened returns at most so many bytes of text from a request, without the characters that are unfit for a log.
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

// Peer is the address at the other end of the connection, without port and zone; zero if it has none
// (a Unix socket).
func Peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}
