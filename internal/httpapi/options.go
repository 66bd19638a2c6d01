package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"oauth-server/internal/admission"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

// Options are what [New] builds a [Server] from. Issuer, Tokens, Authorizations, Sessions,
// Inspector and Keys are required.
type Options struct {
	// Issuer is the server's identifier (RFC 8414 2): an http or https URL without query or
	// fragment. Every address that the server publishes starts with it; a path in it is served too.
	Issuer string

	Tokens         Tokens
	Authorizations Authorizations
	Sessions       Sessions
	Inspector      Inspector
	Keys           Keys

	// Gate decides whether there is time for the pages of people. Nil: there always is.
	Gate Gate
	// Ready returns the state of the server for /readyz. Nil: always ready.
	Ready func(context.Context) Readiness
	// Answered is called after every request, with the context of the request. It must not block.
	// Nil disables it.
	Answered func(context.Context, Answer)
	// Logger gets one line per request and one per internal error. Nil: nothing is logged.
	Logger *slog.Logger
	// TrustedProxies are the peers whose TrustedHeader and X-Request-Id are believed. None by
	// default.
	TrustedProxies []netip.Prefix
	// TrustedHeader is where those proxies name the client: [XForwardedFor], the default, or
	// [Forwarded]. The proxies must overwrite or append to it; the other is never read.
	TrustedHeader string
	// TrustedHops is how many entries of that header are read at most, from its end: the number of
	// trusted proxies that a request passes, one behind the other. 0 means 1.
	TrustedHops int
	// LimitedCode returns the OAuth error code of a 429. Nil: [grants.TemporarilyUnavailable].
	LimitedCode func() grants.ErrorCode
	// GrantTypes are published in the metadata. Nil: all but password.
	GrantTypes []clientcfg.Grant
	// ScopeTexts holds, by scope, what it allows, in words for the consent page. A scope without a
	// text is put into words from its name.
	ScopeTexts map[string]string
}

// Answer is how a request was answered, for metrics.
type Answer struct {
	// Route is the path as registered, without the issuer's; empty if there was nothing at the
	// address.
	Route     string
	Method    string
	Status    int
	GrantType string // as asked for, of token requests
	Error     string // OAuth error code, if any
	// Shed is what there was not enough of for the request, which was refused because the server is overloaded.
	// Empty: it was not.
	Shed     admission.Resource
	Duration time.Duration
}

// Keys publishes the signing keys. [keys.Ring] is one.
type Keys interface {
	// JWKS returns the JSON Web Key Set (RFC 7517 5) of all keys whose tokens may still be valid,
	// encoded.
	JWKS() []byte
}

// validate returns an error that joins everything that is missing or wrong.
func (o *Options) validate() error {
	var errs []error
	if _, err := parseIssuer(o.Issuer); err != nil {
		errs = append(errs, err)
	}
	if h := o.TrustedHeader; h != "" && h != XForwardedFor && h != Forwarded || o.TrustedHops < 0 {
		errs = append(errs, fmt.Errorf("httpapi: %d hops of the header %q cannot be trusted", o.TrustedHops, h))
	}
	for name, missing := range map[string]bool{
		"Tokens": o.Tokens == nil, "Authorizations": o.Authorizations == nil, "Sessions": o.Sessions == nil,
		"Inspector": o.Inspector == nil, "Keys": o.Keys == nil,
	} {
		if missing {
			errs = append(errs, fmt.Errorf("httpapi: Options.%s is missing", name))
		}
	}
	return errors.Join(errs...)
}

func (o *Options) setDefaults() {
	if o.Ready == nil {
		o.Ready = func(context.Context) Readiness { return Readiness{Status: Ready} }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.LimitedCode == nil {
		o.LimitedCode = func() grants.ErrorCode { return grants.TemporarilyUnavailable }
	}
	o.TrustedHeader, o.TrustedHops = cmp.Or(o.TrustedHeader, XForwardedFor), cmp.Or(o.TrustedHops, 1)
	if o.GrantTypes == nil {
		o.GrantTypes = []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.ClientCredentials, clientcfg.RefreshToken}
	}
}

// parseIssuer checks an issuer identifier (RFC 8414 2). Plain http is for loopback addresses and
// for servers behind a proxy that are not configured with their outside address yet; browsers then
// get a cookie without Secure.
func parseIssuer(issuer string) (*url.URL, error) {
	u, err := url.Parse(issuer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("httpapi: issuer %q is not a URL", issuer)
	case (u.Scheme != "https" && u.Scheme != "http") || u.Host == "":
		return nil, fmt.Errorf("httpapi: issuer %q must be an http or https URL", issuer)
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(issuer, "#"):
		return nil, fmt.Errorf("httpapi: issuer %q must have neither user, query nor fragment", issuer)
	case strings.Contains(u.Path, ":") || strings.Contains(u.Path, "*"):
		return nil, fmt.Errorf("httpapi: issuer %q must not have : or * in its path", issuer)
	}
	return u, nil
}
