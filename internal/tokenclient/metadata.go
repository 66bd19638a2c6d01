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

	"oauth-server/internal/clientcfg"
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
var ErrNoIssuer = errors.New("it does not answer as that issuer")

// Discover fetches the metadata of the issuer and checks it. The issuer in it must be identical to
// the requested one (RFC 8414 section 3.3), and every endpoint must use https. A loopback issuer
// without TLS proves nothing, so its endpoints must have the same address. The error wraps
// [ErrNoIssuer] if the address answers at all.
func Discover(ctx context.Context, client *http.Client, issuer string) (*Metadata, error) {
	address, err := MetadataURL(issuer)
	if err != nil {
		return nil, err
	}
	body, err := get(ctx, client, address)
	if err != nil {
		return nil, fmt.Errorf("read the metadata of %s: %w", issuer, err)
	}
	var m Metadata
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, fmt.Errorf("%w: the metadata at %s is no JSON object: %w", ErrNoIssuer, address, err)
	}
	if err := m.check(issuer); err != nil {
		return nil, fmt.Errorf("%w: the metadata at %s cannot be trusted: %w", ErrNoIssuer, address, err)
	}
	return &m, nil
}

// MetadataURL returns the address of the metadata of an issuer: the well-known path is inserted
// between the host and the issuer's own path (RFC 8414 section 3.1).
func MetadataURL(issuer string) (string, error) {
	if err := checkAddress(issuer); err != nil {
		return "", fmt.Errorf("issuer: %w", err)
	}
	u, err := url.Parse(issuer)
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("issuer: %q must be a URL without query and fragment", issuer)
	}
	path := "/.well-known/oauth-authorization-server" + strings.TrimSuffix(u.EscapedPath(), "/")
	return u.Scheme + "://" + u.Host + path, nil
}

func (m *Metadata) check(issuer string) error {
	if m.Issuer != issuer {
		return fmt.Errorf("it is about the issuer %q, not %q", m.Issuer, issuer)
	}
	if m.TokenEndpoint == "" {
		return errors.New("it names no token_endpoint")
	}
	for name, address := range map[string]string{
		"authorization_endpoint": m.AuthorizationEndpoint,
		"token_endpoint":         m.TokenEndpoint,
		"jwks_uri":               m.JWKSURI,
	} {
		if address == "" {
			continue
		}
		if err := checkAddress(address); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if of, at := origin(issuer), origin(address); of != at && (strings.HasPrefix(of, "http:") || strings.HasPrefix(at, "http:")) {
			return fmt.Errorf("%s: %q is not on the address of the issuer, and without TLS on both it must be", name, address)
		}
	}
	return nil
}

// origin returns the scheme and host of a checked URL, in lower case.
func origin(checked string) string {
	u, err := url.Parse(checked)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
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

// checkAddress returns an error for an address to which a secret would be sent in clear.
func checkAddress(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "":
		return fmt.Errorf("%q is not an absolute http or https URL", raw)
	case u.User != nil:
		return fmt.Errorf("%q must not carry user information", u.Redacted())
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && clientcfg.IsLoopback(u.Hostname()):
		return nil
	case u.Scheme == "http":
		return fmt.Errorf("%q is plain http on another machine: secrets need https", raw)
	}
	return fmt.Errorf("%q is not an absolute http or https URL", raw)
}

func get(ctx context.Context, client *http.Client, address string) (body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: GET %s answered %s", ErrNoIssuer, address, res.Status)
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "application/json" {
		return nil, fmt.Errorf("%w: GET %s answered with content type %q, not application/json", ErrNoIssuer, address, kind)
	}
	body, err = io.ReadAll(io.LimitReader(res.Body, maxMetadataSize+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxMetadataSize {
		return nil, fmt.Errorf("%w: GET %s answered more than %d bytes", ErrNoIssuer, address, maxMetadataSize)
	}
	return body, nil
}
