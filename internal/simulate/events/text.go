package events

import (
	"bytes"
	"unicode/utf8"
)

// decodeOurs fills in the values from a line of this server: pairs in the format of slog, or an
// object.
func (p *parser) decodeOurs(line []byte) *problem {
	at := bytes.Index(line, []byte("time="))
	onlyJSON := at < 0 || line[0] == '{' || bytes.LastIndexByte(line[:at], '{') > bytes.LastIndexByte(line[:at], '}')
	switch bad := p.decodeJSON(line); {
	case bad == errNoObject && onlyJSON:
		return notOurs
	case bad == nil || onlyJSON:
		return bad
	}
	p.clear()
	if !p.pairs(line[at:], spaces) || !p.has(keyKind) {
		return notOurs
	}
	return nil
}

// pairs fills in the values from pairs KEY=VALUE. They are separated by spaces, in Keycloak's log
// also by commas. Values can be in quotes, with the escapes of this server or of Keycloak.
func (p *parser) pairs(b, separator []byte) bool {
	for {
		b = bytes.TrimLeft(b, " ,")
		if len(b) == 0 {
			return true
		}
		eq := bytes.IndexByte(b, '=')
		if eq <= 0 {
			return false
		}
		text, end := pair(b[eq+1:], separator)
		if end < 0 {
			return false
		}
		p.set(p.root.find(b[:eq]), value{plain, text})
		b = b[eq+1+end:]
	}
}

// pair reads a value and returns where it ends, or -1 if it has no end.
func pair(b, separator []byte) (value []byte, end int) {
	isKeycloak := len(separator) > 1
	switch {
	case len(b) > 0 && b[0] == '"':
		end, esc := text(b, 1)
		switch {
		case end < 0:
			return nil, -1
		case !esc:
			return b[1:end], end + 1
		case isKeycloak:
			return bytes.ReplaceAll(b[1:end], []byte(`\"`), []byte(`"`)), end + 1
		}
		return unquote(b[1:end]), end + 1
	case len(b) > 0 && b[0] == '\'' && isKeycloak:
		if end = bytes.IndexByte(b[1:], '\''); end < 0 {
			return nil, -1
		}
		return b[1 : end+1], end + 2
	}
	if end = bytes.Index(b, separator); end < 0 {
		end = len(b)
	}
	return b[:end], end
}

var (
	spaces, commas = []byte(" "), []byte(", ") // between the pairs of this server, and of Keycloak

	keycloakEvents = []byte("[org.keycloak.events]") // the log category of the events
	keycloakType   = []byte("type=")                 // the beginning of the fields of an event
)

var errKeycloakPairs = &problem{wholeLine, "has an event with ambiguous fields"}

// decodeKeycloak fills in the values from an event of Keycloak, or from a line of its log: as text,
// or as an object with the event in its message.
func (p *parser) decodeKeycloak(line []byte) *problem {
	event, brace := bytes.Index(line, keycloakType), bytes.IndexByte(line, '{')
	if !bytes.Contains(line, []byte("realmId=")) || !bytes.Contains(line, []byte("clientId=")) {
		event = -1
	}
	if brace >= 0 && (event < 0 || brace < event) {
		switch bad := p.decodeJSON(line); {
		case bad == nil:
			return p.decodeMessage()
		case brace == 0 || event < 0 && bytes.Contains(line[brace:], []byte("realmId")):
			return bad
		}
	}
	switch {
	case event < 0 && !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0:
		return notKeycloak
	case event < 0:
		return skip // from another part of the server
	}
	logged := value{plain, line[:event]}
	if at := lastDate(line[:event]); at != nil {
		logged.raw = at
	} else if len(p.clock.stamp) > 0 {
		logged = value{}
	}
	return p.decodeEvent(line[event:], logged)
}

// isType reports whether a text is the type of an event, known or not.
func isType(b []byte) bool {
	for _, c := range b {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return len(b) > 0
}

// field returns a field of Keycloak that is not of a request.
func (p *parser) field(name string) []byte {
	if n := p.root.find([]byte(name)); n != nil {
		return p.values[n.slot].text()
	}
	return nil
}

// decodeMessage fills in the values from the message of a log line in JSON, if the line is one.
func (p *parser) decodeMessage() *problem {
	if isType(p.text(keyKind)) || len(p.field("operationType")) > 0 { // an event, or an event of an administrator
		return nil
	}
	logger := string(p.field("loggerName"))
	message := p.field("message")
	switch {
	case len(message) == 0:
		return notKeycloak
	case logger != "" && logger != "org.keycloak.events":
		return skip
	case !bytes.HasPrefix(message, keycloakType) && (logger == "" || message[0] == '{' || bytes.Contains(message, keycloakEvents)):
		return notKeycloak // a complete line with its own time
	}
	return p.decodeEvent(message, p.values[p.slot[keyLogged]])
}

// decodeEvent fills in the values from the fields of an event: key="value", separated by commas. In
// older releases values have no quotes, or single quotes if they contain a space. The name of the
// thread precedes the fields.
func (p *parser) decodeEvent(b []byte, logged value) *problem {
	at := bytes.Index(b, keycloakType)
	if at < 0 {
		return skip
	}
	clear(p.values) // but not what they were decoded into, where b may be
	clear(p.ranks)
	if !p.pairs(b[at:], commas) || !isType(p.text(keyKind)) {
		return errKeycloakPairs
	}
	for i, v := range p.values {
		if string(v.raw) == "null" {
			p.values[i] = value{}
		}
	}
	p.values[p.slot[keyTime]], p.values[p.slot[keyLogged]] = value{}, logged
	return nil
}

// lastDate returns the last part of a text that looks like a date, and the text after it up to a
// space. A log collector may have put its own time before it.
func lastDate(b []byte) []byte {
	for i := len(b) - 19; i >= 0; i-- {
		if b[i+4] != '-' || b[i+7] != '-' || b[i+13] != ':' || b[i+16] != ':' {
			continue
		}
		end := i + 19
		for end < len(b) && b[end] != ' ' {
			end++
		}
		return b[i:end]
	}
	return nil
}
