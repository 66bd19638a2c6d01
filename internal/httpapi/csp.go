package httpapi

import (
	"net/netip"
	"net/url"
	"strings"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

// contentSecurityPolicy allows a page the server's own style sheet, images and forms, and nothing
// else: no script, no frame around it. p is the authorization request that the page shows, nil if
// it shows none.
func contentSecurityPolicy(p *grants.Prompt) string {
	policy := "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
	if p == nil {
		return policy
	}
	return policy + " " + strings.Join(formTargets(p.RedirectURI), " ")
}

// formTargets are the CSP sources to which the answer to the consent form may lead. Browsers apply
// form-action to every redirect that follows a form (Chrome, Safari): first to the client's
// redirect URI, then to where the client redirects, which may be another origin of its own. If one
// of them is missing, the user is stuck on the consent page with a code that has been spent
// (docs/adr/0010).
func formTargets(redirectURI string) []string {
	u, err := url.Parse(redirectURI)
	if err != nil {
		return nil
	}
	switch {
	case u.Scheme == "https":
		return []string{originOf(u), "https:"}
	case u.Scheme == "http" && clientcfg.IsLoopback(u.Hostname()):
		return []string{originOf(u), "https:", "http://127.0.0.1:*", "http://localhost:*"}
	}
	return []string{u.Scheme + ":"} // an app; the browser's part ends there
}

// originOf is the origin as a CSP source, or only its scheme where the grammar of CSP3 has no word
// for the origin: IPv6 literals, names that are not ASCII.
func originOf(u *url.URL) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:"
	a, err := netip.ParseAddr(u.Hostname())
	if (err == nil && a.Is6()) || u.Host == "" || strings.Trim(u.Host, plain) != "" {
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}
