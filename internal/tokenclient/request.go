package tokenclient

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// Request describes the token that is wanted.
type Request struct {
	Issuer       string // exactly as the server names itself
	Grant        clientcfg.Grant
	ClientID     string
	ClientSecret string // empty for a public client
	Scopes       []string

	// Username and Password are for the password grant. For codes, Username only separates the
	// cached tokens of several people.
	Username, Password string
	// RefreshToken is for the refresh_token grant; if it is empty, the cached one is used.
	RefreshToken string

	// RedirectPort is the port of the loopback listener for codes; zero means a free one, which
	// servers allow by RFC 8252 section 7.3.
	RedirectPort int
	// RedirectPath is the path that the client is registered with.
	RedirectPath string

	// CacheFile caches this one token, CacheDir one file per [Key]. Without either, nothing is
	// cached.
	CacheFile, CacheDir string
	// Force requests a new token even if the cached one is still valid.
	Force bool
}

// Validate returns all that is missing or invalid as one joined error, or nil. Each part begins with
// the name of the flag.
func (r *Request) Validate() error {
	var errs []error
	if _, err := MetadataURL(r.Issuer); err != nil {
		errs = append(errs, err)
	}
	if err := validateKind(r.Grant); err != nil {
		errs = append(errs, err)
	}
	if r.ClientID == "" {
		errs = append(errs, errors.New("client-id: is needed"))
	}
	for _, s := range r.Scopes {
		if !clientcfg.ValidScopeToken(s) {
			errs = append(errs, fmt.Errorf("scope: %q is not a scope-token (RFC 6749 3.3)", s))
		}
	}
	return errors.Join(append(errs, r.validateGrant()...)...)
}

func validateKind(g clientcfg.Grant) error {
	var known []string
	for _, k := range clientcfg.Grants() {
		if k == g {
			return nil
		}
		known = append(known, strconv.Quote(string(k)))
	}
	if g == "" {
		return fmt.Errorf("grant: is needed, one of %s", strings.Join(known, ", "))
	}
	return fmt.Errorf("grant: %q is none of %s", g, strings.Join(known, ", "))
}

func (r *Request) validateGrant() (errs []error) {
	switch r.Grant {
	case clientcfg.ClientCredentials:
		if r.ClientSecret == "" {
			errs = append(errs, errors.New("client-secret: client_credentials needs one"))
		}
	case clientcfg.Password:
		if r.Username == "" || r.Password == "" {
			errs = append(errs, errors.New("username, password: the password grant needs both"))
		}
	case clientcfg.AuthorizationCode:
		if r.RedirectPort < 0 || r.RedirectPort > 65535 {
			errs = append(errs, fmt.Errorf("redirect-port: %d is not a port", r.RedirectPort))
		}
		if !strings.HasPrefix(r.RedirectPath, "/") || strings.ContainsAny(r.RedirectPath, "?#") {
			errs = append(errs, fmt.Errorf("redirect-path: %q is not a path from the root", r.RedirectPath))
		}
	case clientcfg.RefreshToken:
		if r.RefreshToken == "" && !r.caches() {
			errs = append(errs, errors.New("refresh-token: is needed when there is no cache"))
		}
	}
	return errs
}

func (r *Request) caches() bool { return r.CacheFile != "" || r.CacheDir != "" }

func (r *Request) key(grant clientcfg.Grant) Key {
	k := Key{
		Issuer:   r.Issuer,
		ClientID: r.ClientID,
		Grant:    grant,
		Username: r.Username,
		Scope:    normalScope(r.Scopes),
	}
	if r.RefreshToken != "" {
		k.From = secret.DigestOf(r.RefreshToken).String()
	}
	return k
}

func (r *Request) cachePath(k Key) string {
	if r.CacheFile != "" {
		return r.CacheFile
	}
	return filepath.Join(r.CacheDir, k.fileName())
}
