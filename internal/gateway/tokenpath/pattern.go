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

// NearURL reports whether an upstream may lead the path of a URL, or what its query says in place of one, to the token
// endpoint although it is another path. Routers do so with
//
//   - what follows behind the path: /token/x, /token.json, /token%20 (PATH_INFO of RFC 3875, formats, prefixes);
//   - a script in it: /index.php/oauth/token, /oauth/token.php/x;
//   - an encoding that is decoded twice, and a path in the query: /index.php?r=oauth/token.
//
// Other endpoints may have such paths, too: it is for the parameters of the request to say whether it asks for a token.
func (p Pattern) NearURL(u *url.URL) bool {
	if p.near(u.Path) {
		return true
	}
	for _, path := range []string{withoutParameters(u.RawPath), u.Path} {
		if decoded, err := url.PathUnescape(path); err == nil && decoded != u.Path && p.near(decoded) {
			return true
		}
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		for _, path := range []string{value, name + "/" + value} {
			if decoded, err := url.QueryUnescape(path); err == nil && path != "" && p.near(decoded) {
				return true
			}
		}
	}
	return false
}

// near reports whether the segments of the pattern are in the path, from its begin or behind a script, which has a dot in its
// name and may be in a folder. Between them there is nothing but scripts.
func (p Pattern) near(path string) bool {
	if behind, found := behindAuthority(path); found && p.near("/"+behind) {
		return true
	}
	want, anywhere := p[1:], p[1] == "**"
	if anywhere {
		want = want[1:]
	}
	if want[0] == "" { // every path is beneath /
		return false
	}
	found := make([]bool, len(want)+1) // by how many are found so far
	found[0] = true
	for segment := range strings.SplitSeq(normal(path)[1:], "/") {
		script := strings.Contains(segment, ".")
		for n := len(want); n > 0; n-- {
			found[n] = found[n] && (n == len(want) || script) || found[n-1] && begins(segment, want[n-1])
		}
		found[0] = anywhere || script
	}
	return found[len(want)]
}

// begins reports whether a segment is the wanted one, or that with something behind it which begins with no letter or digit.
func begins(segment, want string) bool {
	if want == "*" {
		return segment != ""
	}
	behind, does := strings.CutPrefix(segment, want)
	return does && (behind == "" || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789_-", rune(behind[0])))
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
	p = path.Clean("/" + strings.ReplaceAll(withoutParameters(p), `\`, "/"))
	return strings.ToLower(strings.ToUpper(p)) // ſ is S, and the Kelvin sign K
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
