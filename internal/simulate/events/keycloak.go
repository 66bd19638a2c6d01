package events

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"oauth-server/internal/simulate/traffic"
)

// keycloak reads events of Keycloak: as returned by the admin API, as written by exporters, and as
// lines of its log that the jboss-logging listener writes, as text or JSON.
type keycloak struct {
	*fields
	at, logged, kind, client, user, remote, failure        int
	grant, method, scope, life, logger, message, operation int
}

// Problems of events of Keycloak.
var (
	errKeycloakTime     = &problem{"time", "is missing"}
	errKeycloakTimeForm = &problem{"time", "is not a time with a date"}
	errKeycloakClient   = &problem{"clientId", "is missing"}
	errKeycloakLine     = &problem{wholeLine, "is neither an event nor a line of Keycloak's log"}
	errKeycloakPairs    = &problem{wholeLine, "has an event whose fields cannot be told apart"}
)

// keycloakEvents is the log category of the events.
var keycloakEvents = []byte("[org.keycloak.events]")

// keycloakGrants has the event types of token requests, and their grants if the event has no grant.
var keycloakGrants = map[string]string{ //nolint:gosec // G101: names
	"CLIENT_LOGIN":                "client_credentials",
	"CODE_TO_TOKEN":               "authorization_code",
	"REFRESH_TOKEN":               "refresh_token",
	"LOGIN":                       "", // from a browser, unless it has the grant password
	"TOKEN_EXCHANGE":              tokenExchange,
	"OAUTH2_DEVICE_CODE_TO_TOKEN": deviceCode,
	"AUTHREQID_TO_TOKEN":          ciba,
	"PERMISSION_TOKEN":            "urn:ietf:params:oauth:grant-type:uma-ticket",
	"JWT_BEARER":                  "urn:ietf:params:oauth:grant-type:jwt-bearer",
	"OAUTH2_EXTENSION_GRANT":      "extension",
}

func newKeycloak(c *shared) *keycloak {
	l := newLayout()
	k := &keycloak{
		at: l.field(".time"), logged: l.field(`."@timestamp"`, ".timestamp"),
		kind: l.field(".type"), client: l.field(".clientId"), user: l.field(".userId"), remote: l.field(".ipAddress"), failure: l.field(".error"),
		grant: l.field(".grant_type", ".details.grant_type"), method: l.field(".auth_method", ".details.auth_method"),
		scope: l.field(".scope", ".details.scope"), life: l.field(".access_token_expiration_time", ".details.access_token_expiration_time"),
		logger: l.field(".loggerName", `."log.logger"`, ".log.logger"), message: l.field(".message"),
		operation: l.field(".operationType"),
	}
	k.fields = newFields(l, c)
	return k
}

func (k *keycloak) parse(line []byte, r *traffic.Request) *problem {
	if bad := k.pick(line); bad != nil {
		return bad
	}
	name, failed := strings.CutSuffix(string(k.text(k.kind)), "_ERROR")
	grant, known := keycloakGrants[name]
	switch {
	case known:
	case k.has(k.kind) && !isType(k.text(k.kind)):
		return errKeycloakPairs
	default:
		return skip
	}
	if k.has(k.grant) {
		grant = k.string(k.grant)
	} else if k.is(k.method, "oauth_credentials") {
		grant = "password"
	}
	if name == "LOGIN" && grant != "password" {
		return skip
	}
	if bad := k.time(r, errKeycloakTime, errKeycloakTimeForm, k.at, k.logged); bad != nil {
		return bad
	}
	r.Client, r.Grant, r.Failed = nameOf(k.string(k.client)), grant, failed || k.has(k.failure) && !k.is(k.failure, "null")
	if r.User = nameOf(k.string(k.user)); grant == "client_credentials" {
		r.User = "" // the user is the service account
	}
	r.Source, r.Scope, r.Lifetime = k.strings.addr(k.text(k.remote)), k.string(k.scope), k.seconds(k.life)
	return clientOr(r, errKeycloakClient)
}

// nameOf returns a name from the log, which writes null for an absent one.
func nameOf(text string) string {
	if text == "null" {
		return ""
	}
	return text
}

// pick fills the slots.
func (k *keycloak) pick(line []byte) *problem {
	line = bytes.TrimSpace(line)
	if len(line) == 0 {
		return skip
	}
	category, event := bytes.Index(line, keycloakEvents), len(keycloakEvents)
	if brace := bytes.IndexByte(line, '{'); brace >= 0 && (category < 0 || brace < category) {
		switch bad := k.line(line, k.root); {
		case bad == nil:
			return k.pickMessage()
		case brace == 0 || category < 0 && bytes.Contains(line[brace:], []byte("realmId")):
			return bad
		}
	}
	if category < 0 && isEvent(line) { // a log format without the category
		category, event = bytes.Index(line, keycloakType), 0
	}
	switch {
	case category < 0 && !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0:
		return errKeycloakLine
	case category < 0:
		return skip // from another part of the server
	}
	clear(k.values)
	if at, ok := stamp(line[:category]); ok || len(k.clock.stamp) == 0 {
		k.values[k.logged] = value{plain, at}
	}
	return k.pickPairs(line[category+event:])
}

// keycloakType is the beginning of the fields of an event.
var keycloakType = []byte("type=")

// isEvent reports whether a text has the fields of an event.
func isEvent(b []byte) bool {
	return bytes.Contains(b, keycloakType) && bytes.Contains(b, []byte("realmId=")) && bytes.Contains(b, []byte("clientId="))
}

// isType reports whether a text is the type of an event, known or not.
func isType(b []byte) bool {
	return len(b) > 0 && len(bytes.Trim(b, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")) == 0
}

// pickMessage fills the slots from the message of a log line in JSON, if the line is one.
func (k *keycloak) pickMessage() *problem {
	switch {
	case isType(k.text(k.kind)) || k.has(k.operation): // an event, or an event of an administrator
		return nil
	case !k.has(k.message):
		return errKeycloakLine
	case k.has(k.logger) && !k.is(k.logger, "org.keycloak.events"):
		return skip
	}
	message := append([]byte(nil), k.text(k.message)...)
	if !bytes.HasPrefix(message, keycloakType) && (!k.has(k.logger) || message[0] == '{' || bytes.Contains(message, keycloakEvents)) {
		return errKeycloakLine // a complete line with its own time
	}
	logged := k.values[k.logged]
	clear(k.values)
	k.values[k.logged] = logged
	return k.pickPairs(message)
}

// stamp finds the time in the text before the category: the last part that looks like a date, and
// the text after it up to the level. A log collector may have put its own time before it.
func stamp(b []byte) (at []byte, ok bool) {
	for i := len(b) - 19; i >= 0; i-- {
		if b[i+4] != '-' || b[i+7] != '-' || b[i+13] != ':' || b[i+16] != ':' {
			continue
		}
		end := i + 19
		for end < len(b) && b[end] != ' ' {
			end++
		}
		return b[i:end], true
	}
	return b, false
}

// pickPairs fills the slots from the fields of an event: key="value", separated by commas. In older
// releases values have no quotes, or single quotes if they contain a space. The name of the thread
// precedes the fields.
func (k *keycloak) pickPairs(b []byte) *problem {
	at := bytes.Index(b, keycloakType)
	if at < 0 {
		return skip
	}
	for b = b[at:]; len(b) > 0; {
		eq := bytes.IndexByte(b, '=')
		if eq <= 0 {
			return errKeycloakPairs
		}
		n := k.detail(b[:eq])
		v, end := pairValue(b[eq+1:])
		if end < 0 {
			return errKeycloakPairs
		}
		if n != nil && n.slot >= 0 {
			k.values[n.slot] = v
		}
		for b = b[eq+1+end:]; len(b) > 0 && (b[0] == ',' || b[0] == ' '); b = b[1:] {
		}
	}
	return nil
}

// detail returns the node of a field. The log has no nested fields. The time is the time of the
// line.
func (k *keycloak) detail(key []byte) *node {
	if string(key) == "time" {
		return nil
	}
	return k.root.find(key)
}

// pairValue reads a value and returns where it ends, or -1 if it has no end.
func pairValue(b []byte) (v value, end int) {
	if len(b) == 0 || b[0] != '"' && b[0] != '\'' {
		if end = bytes.Index(b, []byte(", ")); end < 0 {
			end = len(b)
		}
		return value{plain, bytes.TrimRight(b[:end], ", ")}, end
	}
	kind := plain
	for end = 1; end < len(b); end++ {
		switch b[end] {
		case b[0]:
			return value{kind, b[1:end]}, end + 1
		case '\\':
			kind = slashed
			end++
		}
	}
	return v, -1
}

// isKeycloak reports whether a line comes from Keycloak.
func isKeycloak(line []byte) bool {
	if bytes.Contains(line, []byte("[org.keycloak.")) || bytes.Contains(line, []byte("[io.quarkus")) {
		return true
	}
	return hasMembers(line, "type", "realmId") || hasMembers(line, "loggerName", "message") || hasMembers(line, "log.logger", "message")
}
