package tokenrequest

import (
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// PathPattern is the path of a token endpoint, split into segments. A * matches any segment. A first
// segment ** matches any number of segments, including zero, for servers that treat the path before
// the endpoint as the name of an issuer.
type PathPattern []string

// ErrMalformedPath is the error of a path that no request can have, or that would not match the way it
// reads.
var ErrMalformedPath = errors.New("must be a clean path that begins with /, such as /realms/*/protocol/openid-connect/token; * matches one segment, and a leading ** any number")

// ParsePath parses a configured path. It returns [ErrMalformedPath] if the path is invalid.
func ParsePath(p string) (PathPattern, error) {
	if !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "?#;%\\") || path.Clean(p) != p {
		return nil, ErrMalformedPath
	}
	segments := strings.Split(normal(p), "/")
	for i, s := range segments {
		leads := s == "**" && i == 1 && len(segments) > 2 // a lone ** would match every path
		if s != "*" && !leads && strings.ContainsRune(s, '*') {
			return nil, ErrMalformedPath
		}
	}
	return segments, nil
}

// MatchURL is [PathPattern.Match] for the path of a URL. Some servers decode a path before they remove
// parameters. Others, such as Keycloak, treat an encoded slash as a part of the parameter that
// contains it. MatchURL tries both.
func (p PathPattern) MatchURL(u *url.URL) bool {
	if p.Match(u.Path) {
		return true
	}
	cut, err := url.PathUnescape(withoutParameters(u.RawPath))
	return err == nil && u.RawPath != "" && p.Match(cut)
}

// NearURL reports whether an upstream may route the path of a URL, or a path in its query, to the
// token endpoint although it is another path. Routers accept
//
//   - a suffix: /token/x, /token.json, /token%20 (PATH_INFO of RFC 3875, formats, prefixes);
//   - a script: /index.php/oauth/token, /oauth/token.php/x;
//   - double encoding, and a path in the query: /index.php?r=oauth/token.
//
// Other endpoints may have such paths, too. The parameters of the request then decide whether it is
// a token request.
func (p PathPattern) NearURL(u *url.URL) bool {
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

// near reports whether the path contains the segments of the pattern, at its start or after a
// script. A script is a segment with a dot. It may be in a folder. Only scripts may stand between
// the segments.
func (p PathPattern) near(path string) bool {
	if behind, found := behindAuthority(path); found && p.near("/"+behind) {
		return true
	}
	want, anywhere := p[1:], p[1] == "**"
	if anywhere {
		want = want[1:]
	}
	if want[0] == "" { // every path is below /
		return false
	}
	found := make([]bool, len(want)+1) // found[n]: the first n segments are found
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

// begins reports whether a segment is the wanted one, or starts with it and continues with a
// character that is not a letter, a digit, _ or -.
func begins(segment, want string) bool {
	if want == "*" {
		return segment != ""
	}
	behind, does := strings.CutPrefix(segment, want)
	return does && (behind == "" || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789_-", rune(behind[0])))
}

// Match reports whether an upstream may treat the decoded path as the path of the pattern. Servers
// differ in letter case, empty segments, dot segments and parameters within segments, so Match
// ignores all of these. A false match costs little: the request is only checked against the limits.
// A path with a segment .. always matches, because its target depends on whether the server
// resolves it before or after it removes parameters and merges slashes. Clients resolve such
// segments themselves.
func (p PathPattern) Match(path string) bool {
	if climbs(path) || p.match(path) {
		return true
	}
	behind, found := behindAuthority(path)
	return found && p.match(behind)
}

func (p PathPattern) match(path string) bool {
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
	return true // the first segment, before the leading slash of both, is empty
}

// behindAuthority returns the rest of a path if an upstream reads it as a network-path reference,
// where a host follows two slashes (RFC 3986 section 4.2) or more (WHATWG URL Standard).
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

// normal returns the form of a path that is compared.
func normal(p string) string {
	p = strings.ReplaceAll(withoutParameters(p), `\`, "/")
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	if p = path.Clean(p); strings.ContainsFunc(p, func(r rune) bool { return r >= utf8.RuneSelf }) {
		p = strings.ToUpper(p) // so ſ folds to s, and the Kelvin sign to k
	}
	return strings.ToLower(p)
}

// withoutParameters removes the part after a semicolon from each segment of a path.
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
