package grants

import (
	"slices"
	"strings"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/oautherr"
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
			return nil, fail(oautherr.InvalidScope, "The scope holds a character that is not allowed.")
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
		return nil, fail(oautherr.InvalidScope, "This server does not do OpenID Connect: it has no ID tokens. Leave out the scope openid.")
	}
	if !subset(asked, client.Scopes) {
		return nil, fail(oautherr.InvalidScope, "The client is not registered for all of this scope.")
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
		return nil, fail(oautherr.InvalidScope, "A refresh cannot widen the scope that was granted.")
	}
	left := slices.DeleteFunc(slices.Clone(asked), func(s string) bool { return !slices.Contains(client.Scopes, s) })
	if len(left) == 0 && len(asked) > 0 {
		return nil, fail(oautherr.InvalidScope, "The client is no longer registered for any of this scope.")
	}
	return left, nil
}

func subset(small, large []string) bool {
	return !slices.ContainsFunc(small, func(s string) bool { return !slices.Contains(large, s) })
}
