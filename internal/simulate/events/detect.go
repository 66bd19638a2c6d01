package events

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"

	"oauth-server/internal/simulate/traffic"
)

// detectLines is how many lines are examined.
const detectLines = 200

// detect returns the format of a log from its beginning, or "" if it is not recognised.
func detect(head []byte, isDocument bool, m *Mapping) Format {
	in := newInput(bytes.NewReader(head))
	in.doc.on = isDocument
	first := []byte(nil)
	for range detectLines {
		line, _, p, ok := in.next()
		if !ok {
			break
		}
		if line = bytes.TrimSpace(line); p != nil || len(line) == 0 {
			continue
		}
		if first == nil {
			first = append(first, line...)
		}
		for range 1 + deepestWrapper {
			if inner, ok := in.wrap.unwrap(line); ok && !m.empty() && (&webLine{}).split(inner) {
				line = inner // otherwise the mapping would apply to the wrapper
			}
			if f := detectLine(line, m); f != "" {
				return f
			}
			if line, ok = in.wrap.unwrap(line); !ok || len(line) == 0 {
				break
			}
		}
	}
	if first != nil {
		return detectFirst(first, m)
	}
	return ""
}

// detectFirst returns the format of a log from its first line if detectLine recognised no line. It
// also recognises the format that a mapping is meant for but does not fit, so that the error
// describes the problem of the mapping.
func detectFirst(line []byte, m *Mapping) Format {
	switch {
	case isTable(line, m):
		return CSV
	case m.empty():
		return ""
	case hasMembers(line): // with text before the object
		return JSON
	case isText(line) && bytes.ContainsAny(line, separators):
		return CSV
	}
	return ""
}

// isText reports whether a line has only bytes that occur in texts.
func isText(line []byte) bool {
	return utf8.Valid(line) && bytes.IndexFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }) < 0
}

// detectLine returns the format of a line.
func detectLine(line []byte, m *Mapping) Format {
	if m.empty() {
		switch {
		case isKeycloak(line): // before our own format: its lines could quote ours
			return Keycloak
		case isOAuthServer(line):
			return OAuthServer
		case isOkta(line):
			return Okta
		case isEntra(line):
			return Entra
		case isAuth0(line):
			return Auth0
		}
	}
	var l webLine
	switch {
	case l.split(line) && l.agent != nil:
		return Combined
	case l.split(line):
		return Common
	case line[0] == '{' && !m.empty() || hasMembers(line, "client", "time"):
		return JSON
	}
	return ""
}

// isTable reports whether the first line of a log is the header of a table with the columns of the
// mapping.
func isTable(line []byte, m *Mapping) bool {
	if line[0] == '{' || line[0] == '[' {
		return false
	}
	_, err := newTable(m.orDefault(CSV), line)
	return err == nil
}

// hasMembers reports whether a line is an object with all these members.
func hasMembers(line []byte, names ...string) bool {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = `."` + name + `"`
	}
	return hasPath(line, paths...)
}

// hasPath reports whether a line is an object with values at all these paths.
func hasPath(line []byte, paths ...string) bool {
	l := newLayout()
	for _, path := range paths {
		l.field(path)
	}
	s := newScanner(l.slots)
	if s.line(line, l.root) != nil {
		return false
	}
	for _, v := range s.values {
		if v.kind == absent {
			return false
		}
	}
	return true
}

// newParser returns the parser of a format. head is the beginning of the log.
func newParser(f Format, c *shared, head []byte) (parser, error) {
	switch f {
	case OAuthServer:
		return newOAuthServer(c), nil
	case Keycloak:
		return newKeycloak(c), nil
	case Auth0:
		return newAuth0(c), nil
	case Okta:
		return newOkta(c), nil
	case Entra:
		return newEntra(c), nil
	case JSON:
		return newMappedJSON(c)
	case CSV:
		return newMappedCSV(c, head)
	case Common, Combined:
		return newWeb(c, f)
	case Auto:
	}
	return nil, fmt.Errorf("unknown format %q", f)
}

// clientOr returns missing if a request has no client. A failed request without a client is
// skipped, because it concerns no client.
func clientOr(r *traffic.Request, missing *problem) *problem {
	switch {
	case r.Client == "" && r.Failed:
		return skip
	case r.Client == "":
		return missing
	}
	return nil
}

// foreign returns the problem of a file that must be converted first, recognised by its first
// bytes.
func foreign(name string, head []byte) error {
	first, _, more := bytes.Cut(head, []byte{'\n'})
	if text := bytes.TrimSpace(first); !more && bytes.IndexByte(text, '\r') > 0 && text[0] != '{' && text[0] != '[' {
		return fmt.Errorf(`%s has lines that end with a carriage return alone, which is not read: tr '\r' '\n' < FILE | oauth-server simulate -`, name)
	}
	for _, k := range []struct{ magic, what, how string }{
		{"\xff\xfe", "is UTF-16", "iconv -f UTF-16 -t UTF-8"},
		{"\xfe\xff", "is UTF-16", "iconv -f UTF-16 -t UTF-8"},
		{"BZh", "is a bzip2 archive", "bzcat"},
		{"\xfd7zXZ", "is an xz archive", "xzcat"},
		{"PK\x03\x04", "is a zip archive", "unzip -p"},
	} {
		if bytes.HasPrefix(head, []byte(k.magic)) && !isText(first) {
			return fmt.Errorf("%s %s, which is not read: %s FILE | oauth-server simulate -", name, k.what, k.how)
		}
	}
	return nil
}
