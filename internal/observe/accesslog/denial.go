package accesslog

import (
	"context"
	"log/slog"
)

// Denial describes which limit denied a request to which user, or would have; it is part of the
// request's log line. Without an outcome, it only names the user.
type Denial struct {
	Outcome string // such as denied or would_deny; empty if there is no denial
	Limit   string // name of the limit
	// User is the user of the request: a name, or a hash logged as user_hash. It is empty if the
	// user is unknown, or if the client acts for itself.
	User   string
	Hashed bool
	// Skipped is the number of earlier denials that were not logged.
	Skipped uint64
}

// NoteDenial adds the denial to the log line of the request that ctx belongs to. Only the goroutine
// that serves the request may call it.
func NoteDenial(ctx context.Context, d Denial) {
	if r := of(ctx); r != nil {
		r.denial = d
	}
}

// Denied reports whether the request that ctx belongs to has a denial.
func Denied(ctx context.Context) bool {
	r := of(ctx)
	return r != nil && r.denial.Outcome != ""
}

// User returns the log attribute for a user: the name, or a hash of it.
func User(user string, hashed bool) slog.Attr {
	if hashed {
		return slog.String("user_hash", user)
	}
	return slog.String("username", user)
}

// attrs appends the attributes of the denial and the user.
func (d *Denial) attrs(to []slog.Attr) []slog.Attr {
	if d.Outcome != "" {
		to = append(to, slog.String("outcome", d.Outcome))
	}
	if d.Outcome != "" && d.Limit != "" {
		to = append(to, slog.String("limit", plain(d.Limit)))
	}
	if d.User != "" {
		to = append(to, User(d.User, d.Hashed))
	}
	if d.Skipped > 0 {
		to = append(to, slog.Uint64("skipped", d.Skipped))
	}
	return to
}
