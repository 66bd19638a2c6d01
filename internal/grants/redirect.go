package grants

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/oautherr"
)

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
	if !ok || !clientcfg.IsLoopback(u.Hostname()) {
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
