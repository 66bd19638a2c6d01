package httpapi

import (
	"iter"
	"net/netip"
	"slices"
	"strings"
)

// element holds the parameters that one proxy wrote about a request: the client, or zero if it is
// not an address, and the host, or empty if missing.
type element struct {
	node netip.Addr
	host string
}

// forwarded returns the elements of a Forwarded header line, from its end. A malformed line yields
// one zero element.
func forwarded(line string) iter.Seq[element] {
	elements, ok := parseForwarded(line)
	if !ok {
		elements = []element{{}}
	}
	return func(yield func(element) bool) {
		for _, e := range slices.Backward(elements) {
			if !yield(e) {
				return
			}
		}
	}
}

// parseForwarded parses a line of the Forwarded header (RFC 7239 4). It reports false if any part
// is malformed, because an open quote from a client would swallow the text that a proxy appends to
// the line.
func parseForwarded(line string) (elements []element, ok bool) {
	for {
		e, rest, ok := forwardedElement(line)
		if !ok {
			return nil, false
		}
		elements = append(elements, e)
		if rest == "" {
			return elements, true
		}
		line = rest[1:] // after the comma
	}
}

// forwardedElement parses the element of one proxy, up to a comma or the end.
func forwardedElement(s string) (e element, rest string, ok bool) {
	seen := false
	for {
		name, value, rest, ok := forwardedPair(s)
		if !ok {
			return e, "", false
		}
		switch strings.ToLower(name) {
		case "for":
			if seen {
				return e, "", false
			}
			e.node, seen = parseNode(value), true
		case "host":
			e.host = value
		}
		if rest == "" || rest[0] == ',' {
			return e, rest, true
		}
		s = rest[1:] // after the semicolon
	}
}

// forwardedPair parses a parameter up to a semicolon, a comma or the end. The parameter may be
// empty. It accepts blanks around the parameter, and characters such as an unquoted colon, because
// proxies write them.
func forwardedPair(s string) (name, value, rest string, ok bool) {
	s = strings.TrimLeft(s, blanks)
	if s == "" || s[0] == ',' || s[0] == ';' {
		return "", "", s, true
	}
	end := strings.IndexAny(s, "=,;\""+blanks)
	if end <= 0 || s[end] != '=' {
		return "", "", "", false
	}
	name, s = s[:end], s[end+1:]
	if quoted, is := strings.CutPrefix(s, `"`); is {
		value, s, ok = unquote(quoted)
	} else {
		end = strings.IndexAny(s+",", "=,;\""+blanks)
		value, s, ok = s[:end], s[end:], end > 0
	}
	s = strings.TrimLeft(s, blanks)
	return name, value, s, ok && (s == "" || s[0] == ',' || s[0] == ';')
}

// unquote parses a quoted-string (RFC 9110 5.6.4) after its opening quote.
func unquote(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '"' {
			return b.String(), s[i+1:], true
		}
		if s[i] == '\\' {
			if i++; i == len(s) {
				break
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}
