package tokenpath

import (
	"errors"
	"path"
	"strings"
)

// Pattern is the path of a token endpoint, by segments, of which * is any one.
type Pattern []string

// ErrMalformed is a path that no request could have, or that would be compared otherwise than it reads.
var ErrMalformed = errors.New("want a clean path that begins with /, of which * can stand for a whole segment, such as /realms/*/protocol/openid-connect/token")

// Parse returns the pattern that a path in a configuration is, or [ErrMalformed].
func Parse(p string) (Pattern, error) {
	if !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "?#;%\\") || path.Clean(p) != p {
		return nil, ErrMalformed
	}
	segments := strings.Split(normal(p), "/")
	for _, s := range segments {
		if s != "*" && strings.ContainsRune(s, '*') {
			return nil, ErrMalformed
		}
	}
	return segments, nil
}

// Match reports whether an upstream may take the path, which is decoded, for that of the pattern. Servers differ in what
// they make of letter case, of empty and dot segments, and of parameters within segments, so none of these count: a path
// that an upstream takes for another one is judged for nothing, which costs little.
func (p Pattern) Match(path string) bool {
	if p.match(path) {
		return true
	}
	behind, found := behindAuthority(path)
	return found && p.match(behind)
}

func (p Pattern) match(path string) bool {
	for i, want := range p {
		var segment string
		segment, path, _ = strings.Cut(normalFrom(i, path), "/")
		if want != "*" && segment != want || want == "*" && segment == "" {
			return false
		}
	}
	return path == ""
}

// behindAuthority returns what is left of a path for an upstream that reads it as a reference to a URL, where a host stands
// behind two slashes (RFC 3986 section 4.2), or more (the URL Standard of WHATWG).
func behindAuthority(path string) (rest string, found bool) {
	path = strings.ReplaceAll(path, `\`, "/")
	if !strings.HasPrefix(path, "//") {
		return "", false
	}
	_, rest, found = strings.Cut(strings.TrimLeft(path, "/"), "/")
	return rest, found
}

// normalFrom is normal before the first segment is read; the rest is normal already.
func normalFrom(segment int, path string) string {
	if segment > 0 {
		return path
	}
	return normal(path)
}

// normal returns a path in the form that is compared.
func normal(p string) string {
	if strings.ContainsRune(p, ';') {
		segments := strings.Split(p, "/")
		for i, s := range segments {
			segments[i], _, _ = strings.Cut(s, ";")
		}
		p = strings.Join(segments, "/")
	}
	return strings.ToLower(path.Clean("/" + strings.ReplaceAll(p, `\`, "/")))
}
