package accesslog

import (
	"context"
	"log/slog"
)

// Denial says who was denied by which limit, or would have been; it stands in the line of the request. Without an
// outcome it only says whom the request is for.
type Denial struct {
	Outcome string // such as denied or would_deny; empty: there is no denial
	Limit   string // name of the limit
	// User is whom the request is for: a name, or a hash of it under the attribute user_hash. Empty:
	// unknown, or the client itself.
	User   string
	Hashed bool
	// Skipped is how many denials before this one stand in no line.
	Skipped uint64
}

// NoteDenial notes the denial for the line of the request that ctx belongs to. Only the goroutine that
// serves the request may call it.
func NoteDenial(ctx context.Context, d Denial) {
	if r := of(ctx); r != nil {
		r.denial = d
	}
}

// Denied reports whether a denial is noted for the request that ctx belongs to.
func Denied(ctx context.Context) bool {
	r := of(ctx)
	return r != nil && r.denial.Outcome != ""
}

// User is the attribute for a user in the log: the name, or a hash of it.
func User(user string, hashed bool) slog.Attr {
	if hashed {
		return slog.String("user_hash", user)
	}
	return slog.String("username", user)
}

// attrs adds the attributes of the denial, and the user.
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
