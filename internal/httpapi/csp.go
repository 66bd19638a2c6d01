package httpapi

import (
	"net/netip"
	"net/url"
	"strings"

	"oauth-server/internal/grants"
)

// contentSecurityPolicy allows a page our style sheet, our images and our own
// forms, nothing else: no script at all, no frame around it.
//
// Browsers apply form-action to the redirects that follow a form as well
// (Chrome, Safari), so target names where the consent form may lead.
func contentSecurityPolicy(target string) string {
	policy := "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
	if target != "" {
		policy += " " + target
	}
	return policy
}

// targetOf is the CSP source of the prompt's redirect URI: its origin, or only
// its scheme where the grammar of CSP3 has no word for the origin (app schemes, IPv6
// literals, names that are not ASCII).
func targetOf(p *grants.Prompt) string {
	if p == nil {
		return ""
	}
	u, err := url.Parse(p.RedirectURI)
	if err != nil {
		return ""
	}
	if (u.Scheme == "http" || u.Scheme == "https") && plainHost(u) {
		return u.Scheme + "://" + u.Host
	}
	return u.Scheme + ":"
}

func plainHost(u *url.URL) bool {
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.Is6() {
		return false
	}
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:"
	return u.Host != "" && strings.Trim(u.Host, allowed) == ""
}
