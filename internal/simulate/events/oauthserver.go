package events

import (
	"bytes"

	"oauth-server/internal/simulate/traffic"
)

// oauthServer reads the access log of this server, as text or JSON. Its other lines, and entries of
// the audit trail, are not token requests.
type oauthServer struct {
	*fields
	at, level, msg, method, path, status, duration, remote int
	client, grant, hash, name, user                        int
	limit, outcome, action                                 int
}

// Problems of lines of the access log.
var (
	errNotOurs     = &problem{wholeLine, "is no line of this server's log"}
	errOurTime     = &problem{"time", "is missing"}
	errOurTimeForm = &problem{"time", "is not a time"}
	errOurStatus   = &problem{"status", "is not a number"}
	errOurClient   = &problem{"client_id", "is missing"}
	errOurUser     = &problem{"user_hash", "is missing: log_users was not all"}
)

func newOAuthServer(c *shared) *oauthServer {
	l := newLayout()
	p := &oauthServer{
		at: l.field(`."@timestamp"`, "time"), level: l.field("level"), msg: l.field("msg"), method: l.field("method"), path: l.field("path"),
		status: l.field("status"), duration: l.field("duration_ms"), remote: l.field("remote"),
		client: l.field("client_id"), grant: l.field("grant_type"), hash: l.field("user_hash"), name: l.field("username"),
		user: l.field("user"), limit: l.field("limit"), outcome: l.field("outcome"), action: l.field("action"),
	}
	p.fields = newFields(l, c)
	return p
}

func (p *oauthServer) parse(line []byte, r *traffic.Request) *problem {
	if bad := p.pick(line); bad != nil {
		return bad
	}
	if !p.is(p.msg, "request") || !p.ofTokens() {
		return skip
	}
	if bad := p.time(r, errOurTime, errOurTimeForm, p.at); bad != nil {
		return bad
	}
	status, ok := whole(p.text(p.status))
	if !ok {
		return errOurStatus
	}
	// The line is written at the end of the request. The request counts when it arrives, which
	// matters most if it has to wait.
	if r.At = r.At.Add(-p.seconds(p.duration) / 1000); r.At.Year() < firstYear {
		return errOurTimeForm
	}
	r.Client, r.Grant, r.Source = p.string(p.client), p.string(p.grant), p.strings.addr(p.text(p.remote))
	r.User = p.first(p.name, p.hash)
	r.Failed = status != 200 && (status != 429 || p.ofNoPolicy())
	r.Unknown = r.User == "" && p.is(p.user, "unknown")
	if !r.Failed && r.User == "" && !r.Unknown && r.Grant != "" && r.Grant != "client_credentials" {
		return errOurUser
	}
	return clientOr(r, errOurClient)
}

// pick fills the slots.
func (p *oauthServer) pick(line []byte) *problem {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return skip
	}
	at := bytes.Index(line, []byte("time="))
	if brace := bytes.IndexByte(line, '{'); at < 0 || brace >= 0 && brace < at {
		switch bad := p.line(line, p.root); {
		case bad != nil && brace > 0 && at > 0 && bytes.LastIndexByte(line[:at], '}') > bytes.LastIndexByte(line[:at], '{'):
			// The text before it may have other names, as in a stream of Loki.
			return p.pickPairs(line[at:])
		case bad == errNoObject:
			return errNotOurs
		case bad != nil:
			return bad
		case p.has(p.msg):
			return nil
		case p.has(p.action): // an entry of the audit trail
			return skip
		}
		return errNotOurs
	}
	return p.pickPairs(line[at:])
}

func (p *oauthServer) pickPairs(line []byte) *problem {
	clear(p.values)
	if !p.pairs(line) || !p.has(p.msg) {
		return errNotOurs
	}
	return nil
}

// ofTokens reports whether a request is a token request. The path does not show it: token endpoints
// behind a gateway have any path, and the gateway's judge has other paths, is also called by GET,
// and does not always get the grant. But only token requests have a grant, or an unknown user.
func (p *oauthServer) ofTokens() bool {
	return p.has(p.grant) || p.has(p.user) || p.is(p.method, "POST") && bytes.HasSuffix(p.values[p.path].raw, []byte("/token"))
}

// ofNoPolicy reports whether the request was denied before the policies were checked.
func (p *oauthServer) ofNoPolicy() bool {
	switch string(p.text(p.limit)) {
	case "failed_attempts", "failed_attempts.users", "failed_attempts.grants", "passwords.sign_ins_per_minute":
		return true
	}
	return !p.has(p.outcome)
}

// isOAuthServer reports whether a line comes from this server's log.
func isOAuthServer(line []byte) bool {
	if bytes.Contains(line, []byte("level=")) && bytes.Contains(line, []byte(" msg=")) {
		return bytes.Contains(line, []byte("time="))
	}
	return hasMembers(line, "time", "level", "msg") || hasMembers(line, "level", "msg", "duration_ms") // in a wrapper with the time
}
