package events

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// The parts of a line in the Common Log Format or the Combined Log Format.
const (
	webHost = iota
	webIdent
	webUser
	webTime
	webMethod
	webPath
	webProtocol
	webStatus
	webBytes
	webReferer
	webAgent
	webParts
)

var webNames = [webParts]string{"host", "ident", "user", "time", "method", "path", "protocol", "status", "bytes", "referer", "agent"}

// webLine is a line in one of these formats.
type webLine struct {
	parts   [webParts][]byte
	query   []byte
	shifted bool // the user cannot be told apart
}

// errWebShifted is the problem of a line that may have a client, but not at a certain place.
var errWebShifted = &problem{"user", "is ambiguous among the columns before the time"}

// split splits a line: host ident user [time] "request" status bytes, and optionally "referer"
// "agent" and more.
func (l *webLine) split(b []byte) bool {
	*l = webLine{}
	before, b, ok := l.cutTime(b)
	if !ok || !l.who(before) {
		return false
	}
	end, _ := text(b, 0)
	if end < 0 {
		return false
	}
	l.request(b[:end])
	b = bytes.TrimPrefix(b[end+1:], []byte{' '})
	l.parts[webStatus], b, _ = bytes.Cut(b, []byte{' '})
	if _, ok := digits(l.parts[webStatus]); !ok {
		return false
	}
	l.parts[webBytes], b, _ = bytes.Cut(b, []byte{' '})
	l.parts[webReferer], b = inQuotes(b)
	l.parts[webAgent], _ = inQuotes(bytes.TrimPrefix(b, []byte{' '}))
	return true
}

// longestTime is the maximum length of a time in brackets.
const longestTime = 64

// cutTime cuts a line at its time in brackets. The request in quotes must follow. The text before
// the time may also have brackets.
func (l *webLine) cutTime(b []byte) (before, after []byte, ok bool) {
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(" ["))
		if i < 0 {
			return nil, nil, false
		}
		from += i + 2
		end := bytes.IndexByte(b[from:min(from+longestTime, len(b))], ']')
		if end >= 19 && bytes.HasPrefix(b[from+end:], []byte(`] "`)) {
			l.parts[webTime] = b[from : from+end]
			return b[:from-2], b[from+end+3:], true
		}
	}
}

// dash is the ident in almost every log.
var dash = []byte("-")

// who finds the host, the ident and the user in the text before the time. Some formats have more
// columns before the host: the name of the virtual host, several addresses, or a prefix of a log
// shipper. Then the host is the first address. A list of addresses, as in X-Forwarded-For, is one
// column. The user follows the first dash, and can have spaces; without a dash there are just the
// host, the ident and the user.
func (l *webLine) who(b []byte) bool {
	columns := columnsOf(b)
	ident := slices.IndexFunc(columns, func(c []byte) bool { return bytes.Equal(c, dash) })
	if ident == 0 && len(columns) > 2 && bytes.Equal(columns[1], dash) { // no host
		ident = 1
	}
	switch {
	case len(columns) < 3 || ident == len(columns)-1:
		return false
	case ident < 1:
		ident = 1
		l.shifted = len(columns) > 3
	}
	host := max(slices.IndexFunc(columns[:ident], isAddress), 0)
	user := columns[ident+1:]
	for len(user) > 1 && (bytes.Equal(user[0], dash) || isAddress(user[0]) && bytes.Equal(user[1], dash)) {
		user = user[1:]
	}
	l.parts[webHost], l.parts[webIdent] = unquoted(columns[host]), columns[ident]
	if len(user) == 1 {
		l.parts[webUser] = unquoted(user[0])
		return true
	}
	l.shifted = l.shifted || slices.ContainsFunc(user, func(c []byte) bool { return bytes.Equal(c, dash) || isAddress(c) })
	if !l.shifted {
		l.parts[webUser] = bytes.Join(user, []byte{' '})
	}
	return true
}

// columnsOf splits a text at its spaces, except for spaces in quotes or after a comma.
func columnsOf(b []byte) (columns [][]byte) {
	for b = bytes.TrimLeft(b, " "); len(b) > 0; b = bytes.TrimLeft(b, " ") {
		end := 0
		for end < len(b) && (b[end] != ' ' || end > 0 && b[end-1] == ',') {
			if b[end] == '"' {
				if n, _ := text(b, end+1); n > 0 {
					end = n
				}
			}
			end++
		}
		columns = append(columns, b[:end])
		b = b[end:]
	}
	return columns
}

// isAddress reports whether a column is an address or a list of addresses.
func isAddress(column []byte) bool {
	text := unquoted(column)
	return bytes.ContainsAny(text, ".:") && parseAddr(string(text)).IsValid()
}

// unquoted returns a column without quotes.
func unquoted(column []byte) []byte {
	if inner, rest := inQuotes(column); inner != nil && len(rest) == 0 {
		return inner
	}
	return column
}

// request splits the request line: POST /path?query HTTP/1.1.
func (l *webLine) request(b []byte) {
	l.parts[webMethod], b, _ = bytes.Cut(b, []byte{' '})
	target := b
	if i := bytes.LastIndexByte(b, ' '); i >= 0 {
		target, l.parts[webProtocol] = b[:i], b[i+1:]
	}
	l.parts[webPath], l.query, _ = bytes.Cut(target, []byte{'?'})
}

// inQuotes returns the text inside the quotes at the beginning of b, or nil without quotes, and the
// rest.
func inQuotes(b []byte) (inner, rest []byte) {
	if len(b) == 0 || b[0] != '"' {
		return nil, b
	}
	end, _ := text(b, 1)
	if end < 0 {
		return nil, nil
	}
	return b[1:end:end], b[end+1:]
}

// mapWeb prepares for lines of a web server.
func (p *parser) mapWeb(m *Mapping, f Format) error {
	var slots [webParts]int
	parameters := map[string]int{} // of the query
	p.foreign = &problem{wholeLine, "is not in the " + f + " log format"}
	err := p.apply(m.orDefault(f), func(field string, slot int) error {
		if name, isParameter := strings.CutPrefix(field, "query."); isParameter && name != "" {
			parameters[name] = slot
			return nil
		}
		part := slices.Index(webNames[:], field)
		if part < 0 {
			return fmt.Errorf("unknown part %q of a line: use host, user, time, method, path, status, agent and so on, or query.NAME", field)
		}
		slots[part] = slot
		return nil
	})
	missing := p.missing
	p.decode = func(line []byte) *problem {
		var l webLine
		if !l.split(line) {
			return p.foreign
		}
		p.clear()
		for part, slot := range slots {
			if raw := l.parts[part]; slot > 0 && raw != nil && string(raw) != "-" {
				p.values[slot] = value{plain, unquote(raw)}
			}
		}
		query, _ := url.ParseQuery(string(l.query)) // without pairs that are not valid
		for name, slot := range parameters {
			p.values[slot] = value{plain, []byte(query.Get(name))}
		}
		if p.missing = missing; l.shifted {
			p.missing = errWebShifted
		}
		return nil
	}
	return err
}
