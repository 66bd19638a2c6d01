package tokenpath

import (
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
)

// Pattern is the path of a token endpoint, by segments, of which * is any one. A first segment ** is any number of them, also
// none, for servers that take whatever stands before the endpoint for the name of an issuer.
type Pattern []string

// ErrMalformed is a path that no request could have, or that would be compared otherwise than it reads.
var ErrMalformed = errors.New("want a clean path that begins with /, of which * can stand for a whole segment, such as /realms/*/protocol/openid-connect/token, and ** at its start for any number of them")

// Parse returns the pattern that a path in a configuration is, or [ErrMalformed].
func Parse(p string) (Pattern, error) {
	if !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "?#;%\\") || path.Clean(p) != p {
		return nil, ErrMalformed
	}
	segments := strings.Split(normal(p), "/")
	for i, s := range segments {
		leads := s == "**" && i == 1 && len(segments) > 2 // alone it would be every path
		if s != "*" && !leads && strings.ContainsRune(s, '*') {
			return nil, ErrMalformed
		}
	}
	return segments, nil
}

// MatchURL is [Pattern.Match] for the path of a URL. Some servers decode a path before they cut off parameters, and to some,
// such as Keycloak, an encoded slash belongs to the parameter that it is in.
func (p Pattern) MatchURL(u *url.URL) bool {
	if p.Match(u.Path) {
		return true
	}
	cut, err := url.PathUnescape(withoutParameters(u.RawPath))
	return err == nil && u.RawPath != "" && p.Match(cut)
}

// Match reports whether an upstream may take the path, which is decoded, for that of the pattern. Servers differ in what
// they make of letter case, of empty and dot segments, and of parameters within segments, so none of these count: a path
// that an upstream takes for another one is judged for nothing, which costs little. What a segment .. leads to depends on
// whether it is resolved before parameters are cut off and slashes are merged, so such a path may be any. Clients resolve
// it themselves.
func (p Pattern) Match(path string) bool {
	if climbs(path) || p.match(path) {
		return true
	}
	behind, found := behindAuthority(path)
	return found && p.match(behind)
}

func (p Pattern) match(path string) bool {
	rest := normal(path)
	for _, want := range slices.Backward(p) {
		if want == "**" {
			return true
		}
		slash := strings.LastIndexByte(rest, '/')
		segment := rest[slash+1:]
		if want != "*" && segment != want || want == "*" && segment == "" {
			return false
		}
		rest = rest[:max(slash, 0)]
	}
	return true // the first segment, before the slash that both begin with, is empty
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

// climbs reports whether a path has a segment "..".
func climbs(p string) bool {
	if !strings.Contains(p, "..") {
		return false
	}
	p = strings.ReplaceAll(withoutParameters(p), `\`, "/")
	return slices.Contains(strings.Split(p, "/"), "..")
}

// normal returns a path in the form that is compared.
func normal(p string) string {
	return strings.ToLower(path.Clean("/" + strings.ReplaceAll(withoutParameters(p), `\`, "/")))
}

// withoutParameters returns a path without what follows a semicolon in each of its segments.
func withoutParameters(p string) string {
	if !strings.ContainsRune(p, ';') {
		return p
	}
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}
