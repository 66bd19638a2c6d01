package events

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"

	"oauth-server/internal/simulate/traffic"
)

// webLine are the parts of a line in the Common Log Format, and in the Combined one.
type webLine struct {
	host, ident, user, time, method, path, query, protocol, status, bytes, referer, agent []byte
}

// webFields are the names of the parts.
var webFields = map[string]func(*webLine) []byte{
	"host": func(l *webLine) []byte { return l.host }, "ident": func(l *webLine) []byte { return l.ident },
	"user": func(l *webLine) []byte { return l.user }, "time": func(l *webLine) []byte { return l.time },
	"method": func(l *webLine) []byte { return l.method }, "path": func(l *webLine) []byte { return l.path },
	"protocol": func(l *webLine) []byte { return l.protocol }, "status": func(l *webLine) []byte { return l.status },
	"bytes": func(l *webLine) []byte { return l.bytes }, "referer": func(l *webLine) []byte { return l.referer },
	"agent": func(l *webLine) []byte { return l.agent },
}

// split takes a line apart: host ident user [time] "request" status bytes, and then maybe "referer" "agent" and more.
func (l *webLine) split(b []byte) bool {
	*l = webLine{}
	before, b, ok := bytes.Cut(b, []byte(" ["))
	if !ok {
		return false
	}
	if l.host, before, ok = bytes.Cut(before, []byte{' '}); !ok {
		return false
	}
	if l.ident, l.user, ok = bytes.Cut(before, []byte{' '}); !ok {
		return false
	}
	if l.time, b, ok = bytes.Cut(b, []byte(`] "`)); !ok {
		return false
	}
	end, _ := text(b, 0)
	if end < 0 {
		return false
	}
	l.request(b[:end])
	b = bytes.TrimPrefix(b[end+1:], []byte{' '})
	l.status, b, _ = bytes.Cut(b, []byte{' '})
	if _, ok := digits(l.status); !ok {
		return false
	}
	l.bytes, b, _ = bytes.Cut(b, []byte{' '})
	l.referer, b = inQuotes(b)
	l.agent, _ = inQuotes(bytes.TrimPrefix(b, []byte{' '}))
	return true
}

// request takes the line of the request apart: POST /path?query HTTP/1.1.
func (l *webLine) request(b []byte) {
	l.method, b, _ = bytes.Cut(b, []byte{' '})
	target := b
	if i := bytes.LastIndexByte(b, ' '); i >= 0 {
		target, l.protocol = b[:i], b[i+1:]
	}
	l.path, l.query, _ = bytes.Cut(target, []byte{'?'})
}

// inQuotes returns what is in the quotes with which the text begins, nil if it begins with none, and what follows.
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

// web reads logs of web servers.
type web struct {
	*mapped
	line   webLine
	parts  []webPart // by slot
	broken *problem
}

// webPart is a part of a line, or a parameter of the query.
type webPart struct {
	part      func(*webLine) []byte
	parameter string
}

func newWeb(c *shared, f Format) (parser, error) {
	w := &web{broken: &problem{"line", "is not in the " + string(f) + " log format"}}
	m, err := newMapped(c.Mapping.orDefault(f), func(field string) (int, error) {
		part := webPart{part: webFields[field]}
		name, isParameter := strings.CutPrefix(field, "query.")
		switch {
		case isParameter && name != "":
			part.parameter = name
		case part.part == nil:
			return 0, fmt.Errorf("there is no part %q in a line: use host, user, time, method, path, status, agent and so on, or query.NAME", field)
		}
		w.parts = append(w.parts, part)
		return len(w.parts) - 1, nil
	})
	if err != nil {
		return nil, err
	}
	w.mapped = m
	m.fields = newFields(&layout{root: newNode(), slots: len(w.parts)}, c)
	return w, nil
}

func (w *web) parse(line []byte, r *traffic.Request) *problem {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return skip
	}
	if !w.line.split(line) {
		return w.broken
	}
	for slot, p := range w.parts {
		if p.part == nil {
			w.values[slot] = parameter(w.line.query, p.parameter)
			continue
		}
		raw := p.part(&w.line)
		if w.values[slot] = (value{slashed, raw}); string(raw) == "-" {
			w.values[slot] = value{}
		}
	}
	return w.request(r)
}

// parameter returns a parameter of a query, decoded.
func parameter(query []byte, name string) value {
	for len(query) > 0 {
		var part []byte
		part, query, _ = bytes.Cut(query, []byte{'&'})
		key, raw, _ := bytes.Cut(part, []byte{'='})
		if string(key) != name {
			continue
		}
		if bytes.IndexByte(raw, '%') < 0 && bytes.IndexByte(raw, '+') < 0 {
			return value{plain, raw}
		}
		text, err := url.QueryUnescape(string(raw))
		if err != nil {
			return value{plain, raw}
		}
		return value{plain, []byte(text)}
	}
	return value{}
}
