package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/redirecturi"
	"oauth-server/internal/limiter/oautherr"
	"oauth-server/internal/overload"
)

// Options are the parameters of [New]. Issuer, Service and Keys are required.
type Options struct {
	// Issuer is the server's identifier (RFC 8414 2): an http or https URL without query or
	// fragment. All published addresses start with it. If it has a path, the server also serves
	// that path.
	Issuer string

	Service Service
	Keys    Keys

	// Ready returns the state of the server for /readyz. Nil: always ready.
	Ready func(context.Context) Readiness
	// Answered is called after every request, with the context of the request. It must not block.
	// Nil disables it.
	Answered func(context.Context, Answer)
	// Logger gets one line per request and one per internal error. Nil: nothing is logged.
	Logger *slog.Logger
	// Addresses determines the addresses of clients. Nil: the peers are the clients.
	Addresses *Addresses
	// LimitedCode returns the OAuth error code of a 429. Nil: [oautherr.TemporarilyUnavailable].
	LimitedCode func() oautherr.Code
	// GrantTypes are published in the metadata. Nil: all but password.
	GrantTypes []clientcfg.Grant
	// ScopeTexts maps a scope to its description on the consent page. A scope without a text gets a
	// description derived from its name.
	ScopeTexts map[string]string
}

// Answer describes an answered request, for metrics.
type Answer struct {
	// Route is the registered path without the issuer's path. Empty: nothing is registered at the
	// address.
	Route     string
	Method    string
	Status    int
	GrantType string // as requested, for token requests
	Error     string // OAuth error code, if any
	// Shed is the resource that was short when the request was refused under overload. Empty: it
	// was not refused.
	Shed     overload.Resource
	Duration time.Duration
}

// Keys publishes the signing keys. [keys.Ring] implements it.
type Keys interface {
	// JWKS returns the encoded JSON Web Key Set (RFC 7517 5) of all keys with tokens that may still
	// be valid.
	JWKS() []byte
}

func (o *Options) setDefaults() {
	if o.Ready == nil {
		o.Ready = func(context.Context) Readiness { return Readiness{Status: Ready} }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LimitedCode == nil {
		o.LimitedCode = func() oautherr.Code { return oautherr.TemporarilyUnavailable }
	}
	o.Addresses = cmp.Or(o.Addresses, &Addresses{})
	if o.GrantTypes == nil {
		o.GrantTypes = []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.ClientCredentials, clientcfg.RefreshToken}
	}
}

// parseIssuer validates an issuer identifier (RFC 8414 2). It allows plain http for loopback
// addresses, and for servers behind a proxy before their public address is configured. Browsers
// then get a cookie without Secure.
func parseIssuer(issuer string) (*url.URL, error) {
	u, err := url.Parse(issuer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("httpapi: issuer %q is not a URL", issuer)
	case !redirecturi.IsHTTP(u):
		return nil, fmt.Errorf("httpapi: issuer %q must be an http or https URL", issuer)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(issuer, "#"):
		return nil, fmt.Errorf("httpapi: issuer %q must have neither user, query nor fragment", issuer)
	case strings.Contains(u.Path, ":") || strings.Contains(u.Path, "*"):
		return nil, fmt.Errorf("httpapi: issuer %q must not have : or * in its path", issuer)
	}
	return u, nil
}
