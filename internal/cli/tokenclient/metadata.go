package tokenclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"oauth-server/internal/clientcfg/redirecturi"
)

// Bounds on the answers of a server.
const (
	requestTimeout  = 30 * time.Second
	maxMetadataSize = 1 << 20
)

// Metadata is the part of the authorization server metadata (RFC 8414 section
// 2) that a client needs.
type Metadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	JWKSURI               string   `json:"jwks_uri"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	// SendsIssuer means that authorization responses carry iss (RFC 9207 section 3).
	SendsIssuer bool `json:"authorization_response_iss_parameter_supported"`
}

// NewHTTPClient returns a client with a timeout that follows no redirects, because a redirected POST
// would send the secret elsewhere.
func NewHTTPClient() *http.Client {
	return &http.Client{
		Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// ErrNoIssuer is wrapped by errors about an address that answers, but not as the issuer.
var ErrNoIssuer = errors.New("not an issuer")

// Discover fetches the metadata of the issuer and checks it. The issuer in it must be identical to
// the requested one (RFC 8414 section 3.3), and every endpoint must use https. A loopback issuer
// without TLS proves nothing, so its endpoints must have the same address. The error wraps
// [ErrNoIssuer] if the address answers at all.
func Discover(ctx context.Context, client *http.Client, issuer string) (m *Metadata, err error) {
	address, err := MetadataURL(issuer)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of %s: %w", issuer, err)
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read the metadata of %s: %w: GET %s answered %s", issuer, ErrNoIssuer, address, res.Status)
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "application/json" {
		return nil, fmt.Errorf("read the metadata of %s: %w: GET %s answered with content type %q, not application/json",
			issuer, ErrNoIssuer, address, kind)
	}
	m = &Metadata{}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxMetadataSize)).Decode(m); err != nil {
		return nil, fmt.Errorf("%w: the metadata at %s is not a JSON object of at most %d bytes: %w", ErrNoIssuer, address, maxMetadataSize, err)
	}
	if err := m.check(issuer); err != nil {
		return nil, fmt.Errorf("%w: the metadata at %s cannot be trusted: %w", ErrNoIssuer, address, err)
	}
	return m, nil
}

// MetadataURL returns the address of the metadata of an issuer: the well-known path is inserted
// between the host and the issuer's own path (RFC 8414 section 3.1).
func MetadataURL(issuer string) (string, error) {
	u, err := safeURL(issuer)
	if err != nil {
		return "", fmt.Errorf("issuer: %w", err)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("issuer: %q must be a URL without query and fragment", issuer)
	}
	path := "/.well-known/oauth-authorization-server" + strings.TrimSuffix(u.EscapedPath(), "/")
	return u.Scheme + "://" + u.Host + path, nil
}

func (m *Metadata) check(issuer string) error {
	if m.Issuer != issuer {
		return fmt.Errorf("its issuer is %q, not %q", m.Issuer, issuer)
	}
	if m.TokenEndpoint == "" {
		return errors.New("it has no token_endpoint")
	}
	home, err := safeURL(issuer)
	if err != nil {
		return err
	}
	for name, address := range map[string]string{
		"authorization_endpoint": m.AuthorizationEndpoint,
		"token_endpoint":         m.TokenEndpoint,
		"jwks_uri":               m.JWKSURI,
	} {
		if address == "" {
			continue
		}
		u, err := safeURL(address)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		tls := u.Scheme == "https" && home.Scheme == "https"
		if !tls && (u.Scheme != home.Scheme || !strings.EqualFold(u.Host, home.Host)) {
			return fmt.Errorf("%s: %q must have the address of the issuer, unless both use TLS", name, address)
		}
	}
	return nil
}

// authStyle returns how the client authenticates. It is decided before the first request, because
// x/oauth2 would otherwise try both ways and send two requests.
func (m *Metadata) authStyle(secret string) oauth2.AuthStyle {
	basic := len(m.AuthMethods) == 0 || slices.Contains(m.AuthMethods, "client_secret_basic")
	if secret != "" && basic {
		return oauth2.AuthStyleInHeader
	}
	return oauth2.AuthStyleInParams
}

// safeURL parses an address, and returns an error if a secret would be sent to it in clear.
func safeURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || !redirecturi.IsHTTP(u):
		return nil, fmt.Errorf("%q is not an absolute http or https URL", raw)
	case u.User != nil:
		return nil, fmt.Errorf("%q must not contain user information", u.Redacted())
	case u.Scheme == "http" && !redirecturi.IsLoopback(u.Hostname()):
		return nil, fmt.Errorf("%q is plain http on another machine: secrets need https", raw)
	}
	return u, nil
}
