package events

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// detectLines is how many lines are examined.
const detectLines = 200

// detect returns the format of a log from its beginning, or "" if it is not recognised.
func detect(head []byte, m *Mapping) Format {
	in := newInput(bytes.NewReader(head))
	in.doc = documentOf(in)
	var first []byte
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
	case hasAll(line, nil): // with text before the object
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
		if f := detectPreset(line); f != "" {
			return f
		}
	}
	var l webLine
	switch {
	case l.split(line):
		if l.parts[webAgent] != nil {
			return Combined
		}
		return Common
	case line[0] == '{' && !m.empty():
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
	return (&parser{}).mapTable(m, line) == nil
}

// detectionOrder has Keycloak before our own format, because its lines could quote ours.
var detectionOrder = []Format{Keycloak, OAuthServer, Okta, Entra, Auth0, JSON}

// detectPreset returns the format of a line with a preset, or "".
func detectPreset(line []byte) Format {
	for _, f := range detectionOrder {
		hasText := func(all []string) bool {
			return !slices.ContainsFunc(all, func(t string) bool { return !bytes.Contains(line, []byte(t)) })
		}
		hasPaths := func(paths string) bool { return hasAll(line, strings.Fields(paths)) }
		if slices.ContainsFunc(presets[f].texts, hasText) || slices.ContainsFunc(presets[f].objects, hasPaths) {
			return f
		}
	}
	return ""
}

// hasAll reports whether a line is an object with something at all paths.
func hasAll(line []byte, paths []string) bool {
	root, s := &node{}, newScanner(len(paths)+1)
	for i, path := range paths {
		_ = root.add(path, i+1, 0) // the paths are constants
	}
	return s.line(line, root) == nil && !slices.ContainsFunc(s.values[1:], func(v value) bool { return v.kind == absent })
}

// foreign returns the problem of a file that must be converted first, recognised by its first
// bytes.
func foreign(name string, head []byte) error {
	first, _, more := bytes.Cut(head, []byte{'\n'})
	if text := bytes.TrimSpace(first); !more && bytes.IndexByte(text, '\r') > 0 && text[0] != '{' && text[0] != '[' {
		return fmt.Errorf(`%s has lines that end with a carriage return only, which is not supported: tr '\r' '\n' < FILE | oauth-server simulate -`, name)
	}
	for _, k := range []struct{ magic, what, how string }{
		{"\xff\xfe", "is UTF-16", "iconv -f UTF-16 -t UTF-8"},
		{"\xfe\xff", "is UTF-16", "iconv -f UTF-16 -t UTF-8"},
		{"BZh", "is a bzip2 archive", "bzcat"},
		{"\xfd7zXZ", "is an xz archive", "xzcat"},
		{"PK\x03\x04", "is a zip archive", "unzip -p"},
	} {
		if bytes.HasPrefix(head, []byte(k.magic)) && !isText(first) {
			return fmt.Errorf("%s %s, which is not supported: %s FILE | oauth-server simulate -", name, k.what, k.how)
		}
	}
	return nil
}
