package grants

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/redirecturi"
	"oauth-server/internal/limiter/oautherr"
)

// parseScope reads a scope parameter (RFC 6749 3.3): scope-tokens separated by spaces. It keeps the
// client's order and drops duplicates.
func parseScope(raw string) ([]string, *Error) {
	var out []string
	for token := range strings.SplitSeq(raw, " ") {
		if token == "" || slices.Contains(out, token) {
			continue
		}
		if !clientcfg.ValidScopeToken(token) {
			return nil, fail(oautherr.InvalidScope, "The scope contains an invalid character.")
		}
		out = append(out, token)
	}
	return out, nil
}

// grantScope returns the scope of a new authorization: the requested scope, if the client is
// registered for all of it, or all registered scopes if none is requested. It refuses openid,
// because such a client would wait for an ID token.
func grantScope(client *clientcfg.Client, raw string) ([]string, *Error) {
	asked, err := parseScope(raw)
	if err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		return slices.Clone(client.Scopes), nil
	}
	if slices.Contains(asked, clientcfg.ScopeOpenID) {
		return nil, fail(oautherr.InvalidScope, "This server does not support OpenID Connect. Leave out the scope openid.")
	}
	if !subset(asked, client.Scopes) {
		return nil, fail(oautherr.InvalidScope, "The client may not request this scope.")
	}
	return asked, nil
}

// refreshScope returns the scope of an access token under an earlier grant: the requested scope, if
// it was granted, or all granted scopes if none is requested (RFC 6749 6). It drops scopes that the
// client's registration has lost since, so clients that repeat their first scope at every refresh
// (Authlib does) keep working.
func refreshScope(client *clientcfg.Client, granted []string, raw string) ([]string, *Error) {
	asked, err := parseScope(raw)
	if err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		asked = granted
	}
	if !subset(asked, granted) {
		return nil, fail(oautherr.InvalidScope, "A refresh cannot extend the granted scope.")
	}
	left := slices.DeleteFunc(slices.Clone(asked), func(s string) bool { return !slices.Contains(client.Scopes, s) })
	if len(left) == 0 && len(asked) > 0 {
		return nil, fail(oautherr.InvalidScope, "The client may no longer request any of this scope.")
	}
	return left, nil
}

func subset(small, large []string) bool {
	return !slices.ContainsFunc(small, func(s string) bool { return !slices.Contains(large, s) })
}

// redirectMatches reports whether a presented redirect URI equals the registered one, as a string
// (RFC 9700 2.1). The port of a loopback address may differ, because a native app listens on any
// free port (RFC 8252 7.3).
func redirectMatches(registered, presented string) bool {
	if registered == presented {
		return true
	}
	r, okR := splitLoopback(registered)
	p, okP := splitLoopback(presented)
	return okR && okP && r == p
}

// loopbackURI is an http URI on a loopback address, without its port. The rest is kept byte for
// byte, without normalization.
type loopbackURI struct{ host, rest string }

func splitLoopback(raw string) (loopbackURI, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" || u.User != nil || strings.Contains(raw, "#") {
		return loopbackURI{}, false
	}
	rest, ok := strings.CutPrefix(raw, "http://"+u.Host)
	if !ok || !redirecturi.IsLoopback(u.Hostname()) {
		return loopbackURI{}, false
	}
	host := u.Host
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return loopbackURI{}, false
		}
		host = strings.TrimSuffix(host, ":"+port)
	}
	return loopbackURI{host: host, rest: rest}, true
}

// registered reports whether the client has registered the redirect URI.
func registered(client *clientcfg.Client, uri string) bool {
	return slices.ContainsFunc(client.RedirectURIs, func(r string) bool { return redirectMatches(r, uri) })
}

// chooseRedirect returns the redirect URI for the response to an authorization request. A client
// with several registered URIs must send one of them (RFC 6749 3.1.2.3).
func chooseRedirect(client *clientcfg.Client, presented string) (string, *Error) {
	if presented == "" {
		if len(client.RedirectURIs) == 1 {
			return client.RedirectURIs[0], nil
		}
		return "", fail(oautherr.InvalidRequest, "The parameter redirect_uri is missing.")
	}
	if !registered(client, presented) {
		return "", fail(oautherr.InvalidRequest, "The redirect_uri is not registered for this client.")
	}
	return presented, nil
}

// methodS256 is the only code_challenge_method. The method plain does not protect against an
// attacker who can read the authorization request (RFC 9700 2.1.1).
const methodS256 = "S256"

// challengeLength is the length of an S256 challenge: SHA-256 in base64url.
const challengeLength = 43

// checkChallenge checks the PKCE parameters of an authorization request (RFC 7636 4.3). A missing
// method means plain in that RFC, so it is refused.
func checkChallenge(client *clientcfg.Client, challenge, method string) *Error {
	switch {
	case challenge == "" && method != "":
		return fail(oautherr.InvalidRequest, "The parameter code_challenge is missing.")
	case challenge == "" && client.NeedsPKCE():
		return fail(oautherr.InvalidRequest, "The parameter code_challenge is missing: this client must use PKCE (RFC 7636).")
	case challenge == "":
		return nil
	case method != methodS256:
		return fail(oautherr.InvalidRequest, "The code_challenge_method must be S256.")
	case len(challenge) != challengeLength || !allUnreserved(challenge):
		return fail(oautherr.InvalidRequest, "The code_challenge is not a base64url SHA-256 hash.")
	}
	return nil
}

// checkVerifier checks the code_verifier of a token request against the code's challenge (RFC 7636
// 4.6). It also refuses a verifier for a code without a challenge, because an attacker may have
// removed the challenge from the authorization request (RFC 9700 2.1.1, downgrade).
func checkVerifier(challenge, verifier string) *Error {
	switch {
	case challenge == "" && verifier == "":
		return nil
	case challenge == "":
		return fail(oautherr.InvalidGrant, "The authorization request had no code_challenge.")
	case verifier == "":
		return fail(oautherr.InvalidGrant, "The parameter code_verifier is missing.")
	case len(verifier) < 43 || len(verifier) > 128 || !allUnreserved(verifier):
		return fail(oautherr.InvalidGrant, "The code_verifier must have 43 to 128 unreserved characters.")
	}
	sum := sha256.Sum256([]byte(verifier))
	want := base64.RawURLEncoding.EncodeToString(sum[:])
	if subtle.ConstantTimeCompare([]byte(want), []byte(challenge)) != 1 {
		return fail(oautherr.InvalidGrant, "The code_verifier does not match the code_challenge.")
	}
	return nil
}

// allUnreserved reports whether s has only unreserved characters of RFC 3986 2.3, as RFC 7636 4.1
// requires.
func allUnreserved(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '.', c == '_', c == '~':
		default:
			return false
		}
	}
	return true
}
