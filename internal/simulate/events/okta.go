package events

import (
	"strings"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// okta reads the System Log of Okta: as returned by its API, and as sent by log streams, wrapped in
// detail or, for Splunk, in event.
type okta struct {
	*fields
	at, kind, result, actor, actorType, client, remote, grant, granted, user, expires int
}

// Problems of events of the System Log.
var (
	errOktaType     = &problem{wholeLine, "is no event of the System Log: it has no eventType"}
	errOktaTime     = &problem{"published", "is missing"}
	errOktaTimeForm = &problem{"published", "is not a time"}
	errOktaClient   = &problem{"actor", "is not a client, and client.id is missing"}
)

func newOkta(c *shared) *okta {
	l := newLayout()
	wrapped := func(path string) int { return l.field(path, ".detail"+path, ".event"+path) }
	o := &okta{
		at: wrapped(".published"), kind: wrapped(".eventType"), result: wrapped(".outcome.result"),
		actor: wrapped(".actor.id"), actorType: wrapped(".actor.type"), client: wrapped(".client.id"), remote: wrapped(".client.ipAddress"),
		grant: wrapped(".debugContext.debugData.grantType"), granted: wrapped(".debugContext.debugData.grantedScopes"),
		user: wrapped(".target[type=User].id"), expires: wrapped(".target[type=access_token].detailEntry.expires"),
	}
	o.fields = newFields(l, c)
	return o
}

func (o *okta) parse(line []byte, r *traffic.Request) *problem {
	if bad := o.pick(line); bad != nil {
		return bad
	}
	if !o.has(o.kind) {
		return errOktaType
	}
	r.Failed = !o.is(o.result, "SUCCESS")
	// A successful request has one event for each of its tokens, and exactly one is for an access
	// token. A failed request has one event.
	switch string(o.text(o.kind)) {
	case "app.oauth2.token.grant.access_token", "app.oauth2.as.token.grant.access_token":
	case "app.oauth2.token.grant", "app.oauth2.as.token.grant":
		if !r.Failed {
			return skip
		}
	default:
		return skip
	}
	if bad := o.time(r, errOktaTime, errOktaTimeForm, o.at); bad != nil {
		return bad
	}
	isUser := o.is(o.actorType, "User")
	if r.Client = o.string(o.client); r.Client == "" && !isUser {
		r.Client = o.string(o.actor)
	}
	if r.Grant = o.string(o.grant); r.Grant != "client_credentials" {
		if r.User = o.string(o.user); r.User == "" && isUser {
			r.User = o.string(o.actor)
		}
	}
	r.Source = o.strings.addr(o.text(o.remote))
	r.Scope = strings.ReplaceAll(o.string(o.granted), ", ", " ")
	if end, ok := parseTime(o.text(o.expires), o.clock.zone); ok && end.After(r.At) {
		r.Lifetime = end.Sub(r.At).Round(time.Second)
	}
	return clientOr(r, errOktaClient)
}

// isOkta reports whether a line comes from the System Log.
func isOkta(line []byte) bool {
	return hasMembers(line, "eventType", "published") || hasPath(line, ".detail.eventType", ".detail.published") ||
		hasPath(line, ".event.eventType", ".event.published")
}
