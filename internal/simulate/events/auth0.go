package events

import (
	"slices"

	"oauth-server/internal/simulate/traffic"
)

// auth0 reads tenant logs of Auth0: as returned by its management API, and as sent by log streams,
// wrapped in data, with further wrappers around that.
type auth0 struct {
	*fields
	at, kind, client, user, remote, scope int
}

// Problems of entries of a tenant log.
var (
	errAuth0Type     = &problem{wholeLine, "is no entry of a tenant log: it has no type or no date"}
	errAuth0Time     = &problem{"date", "is missing"}
	errAuth0TimeForm = &problem{"date", "is not a time"}
	errAuth0Client   = &problem{"client_id", "is missing"}
)

// auth0Exchange is the token request of a type of log entry.
type auth0Exchange struct {
	grant  string
	failed bool
}

// auth0Exchanges are the types of exchanges for tokens.
var auth0Exchanges = map[string]auth0Exchange{
	"seccft": {"client_credentials", false}, "feccft": {"client_credentials", true},
	"seacft": {"authorization_code", false}, "feacft": {"authorization_code", true},
	"sertft": {"refresh_token", false}, "fertft": {"refresh_token", true}, "ferrt": {"refresh_token", true},
	"sepft": {"password", false}, "fepft": {"password", true},
	"sede": {deviceCode, false}, "fede": {deviceCode, true},
	"sens": {tokenExchange, false}, "fens": {tokenExchange, true},
	"secte": {tokenExchange, false}, "fecte": {tokenExchange, true},
	"seoobft": {auth0MFA, false}, "feoobft": {auth0MFA, true},
	"seotpft": {auth0MFA, false}, "feotpft": {auth0MFA, true},
	"sercft": {auth0MFA, false}, "fercft": {auth0MFA, true},
	"sepotpft": {auth0Passwordless, false}, "fepotpft": {auth0Passwordless, true},
	"sepkft": {auth0Passkey, false}, "fepkft": {auth0Passkey, true},
	"sepkoobft": {auth0MFA, false}, "fepkoobft": {auth0MFA, true},
	"sepkotpft": {auth0MFA, false}, "fepkotpft": {auth0MFA, true},
	"sepkrcft": {auth0MFA, false}, "fepkrcft": {auth0MFA, true},
	"ciba_exchange_succeeded": {ciba, false}, "ciba_exchange_failed": {ciba, true},
}

// auth0Wrappers are the paths to the entries of log streams, including the streams of Amazon
// EventBridge, Azure Event Grid and Splunk.
var auth0Wrappers = []string{".data", ".detail.data", ".data.data", ".event.data"}

func newAuth0(c *shared) *auth0 {
	l := newLayout()
	wrapped := func(name string) int {
		paths := []string{"." + name}
		for _, wrapper := range auth0Wrappers {
			paths = append(paths, wrapper+"."+name)
		}
		return l.field(paths...)
	}
	a := &auth0{
		at: wrapped("date"), kind: wrapped("type"), client: wrapped("client_id"), user: wrapped("user_id"),
		remote: wrapped("ip"), scope: wrapped("scope"),
	}
	a.fields = newFields(l, c)
	return a
}

func (a *auth0) parse(line []byte, r *traffic.Request) *problem {
	if bad := a.pick(line); bad != nil {
		return bad
	}
	x, known := auth0Exchanges[string(a.text(a.kind))]
	switch {
	case known:
	case !a.has(a.kind) || !a.has(a.at): // other logs have types, too
		return errAuth0Type
	default:
		return skip
	}
	if bad := a.time(r, errAuth0Time, errAuth0TimeForm, a.at); bad != nil {
		return bad
	}
	r.Client, r.Grant, r.Failed = a.string(a.client), x.grant, x.failed
	if x.grant != "client_credentials" {
		r.User = a.string(a.user)
	}
	r.Source, r.Scope = a.strings.addr(a.text(a.remote)), a.string(a.scope)
	return clientOr(r, errAuth0Client)
}

// isAuth0 reports whether a line comes from a tenant log.
func isAuth0(line []byte) bool {
	return hasMembers(line, "type", "date", "log_id") || hasMembers(line, "type", "date", "client_id") ||
		slices.ContainsFunc(auth0Wrappers, func(wrapper string) bool { return hasPath(line, wrapper+".type", wrapper+".date") })
}
