package tokenclient

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	const oneOf = "one of client_credentials, authorization_code, refresh_token, password"
	if _, err := MetadataURL(r.Issuer); err != nil {
		errs = append(errs, err)
	}
	if r.ClientID == "" {
		bad("client-id: is required")
	}
	for _, s := range r.Scopes {
		if !clientcfg.ValidScopeToken(s) {
			bad("scope: %q is not a scope-token (RFC 6749 3.3)", s)
		}
	}
	switch r.Grant {
	case clientcfg.ClientCredentials:
		if r.ClientSecret == "" {
			bad("client-secret: client_credentials needs one")
		}
	case clientcfg.Password:
		if r.Username == "" || r.Password == "" {
			bad("username, password: the password grant needs both")
		}
	case clientcfg.AuthorizationCode:
		if r.RedirectPort < 0 || r.RedirectPort > 65535 {
			bad("redirect-port: %d is not a port", r.RedirectPort)
		}
		if !strings.HasPrefix(r.RedirectPath, "/") || strings.ContainsAny(r.RedirectPath, "?#") {
			bad("redirect-path: %q is not a path from the root", r.RedirectPath)
		}
	case clientcfg.RefreshToken:
		if r.RefreshToken == "" && !r.caches() {
			bad("refresh-token: is required without a cache")
		}
	case "":
		bad("grant: is required: %s", oneOf)
	default:
		bad("grant: %q is not %s", r.Grant, oneOf)
	}
	return errors.Join(errs...)
}

func (r *Request) caches() bool { return r.CacheFile != "" || r.CacheDir != "" }

// refreshesCached reports whether the request is to refresh the cached token of a user grant.
func (r *Request) refreshesCached() bool {
	return r.Grant == clientcfg.RefreshToken && r.RefreshToken == ""
}

// key returns the key of the cached token. To refresh a cached token, it is the key of the user
// grant that has one.
func (r *Request) key() Key {
	k := Key{Issuer: r.Issuer, ClientID: r.ClientID, Grant: r.Grant, Username: r.Username}
	scopes := slices.Sorted(slices.Values(r.Scopes))
	k.Scope = strings.Join(slices.Compact(scopes), " ")
	if r.RefreshToken != "" {
		k.From = secret.DigestOf(r.RefreshToken).String()
	}
	if r.refreshesCached() {
		k.Grant = clientcfg.AuthorizationCode
		if e, err := loadEntry(r.cachePath(k)); err == nil && (e == nil || e.Key != k || e.Token.RefreshToken == "") {
			k.Grant = clientcfg.Password
		}
	}
	return k
}

// cachePath returns the path of the cache file of the key. The name in a directory is a hash,
// because an issuer or a username may contain any character.
func (r *Request) cachePath(k Key) string {
	if r.CacheFile != "" {
		return r.CacheFile
	}
	text, _ := json.Marshal(k) // a struct of strings always marshals
	sum := sha256.Sum256(text)
	return filepath.Join(r.CacheDir, hex.EncodeToString(sum[:16])+".json")
}
