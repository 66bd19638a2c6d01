package httpapi

import (
	"net/netip"
	"net/url"
	"strings"

	"oauth-server/internal/clientcfg/redirecturi"
	"oauth-server/internal/grants"
)

// contentSecurityPolicy allows a page only the server's own style sheet, images and forms. It
// allows no scripts, and no frame around the page. p is the authorization request that the page
// shows, or nil.
func contentSecurityPolicy(p *grants.Prompt) string {
	policy := "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
	if p == nil {
		return policy
	}
	return policy + " " + strings.Join(formTargets(p.RedirectURI), " ")
}

// formTargets returns the CSP sources that the answer to the consent form may lead to. Browsers
// (Chrome, Safari) apply form-action to every redirect that follows a form: first to the client's
// redirect URI, then to the client's own redirects, which may go to another of its origins. If a
// source is missing, the user is stuck on the consent page with a code that has been used. A page in
// between that redirects with a Refresh header would keep form-action narrow, but the tests and
// scripts of clients do not expect it, and RFC 9700 section 4.12 asks for a 303.
func formTargets(redirectURI string) []string {
	u, err := url.Parse(redirectURI)
	if err != nil {
		return nil
	}
	switch {
	case u.Scheme == "https":
		return []string{originOf(u), "https:"}
	case u.Scheme == "http" && redirecturi.IsLoopback(u.Hostname()):
		return []string{originOf(u), "https:", "http://127.0.0.1:*", "http://localhost:*"}
	}
	return []string{u.Scheme + ":"} // an app; the browser is done after this redirect
}

// originOf returns the origin as a CSP source. It returns only the scheme if CSP3 cannot express
// the origin: IPv6 literals and non-ASCII names.
func originOf(u *url.URL) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:"
	a, err := netip.ParseAddr(u.Hostname())
	if (err == nil && a.Is6()) || u.Host == "" || strings.Trim(u.Host, plain) != "" {
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}
