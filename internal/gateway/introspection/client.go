package introspection

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oauth-server/internal/gateway/subject"
)

// MaxAnswer is the maximum size of an answer in bytes.
const MaxAnswer = 64 << 10

// DefaultTimeout is the default time limit for an answer.
const DefaultTimeout = time.Second

// Endpoint is an introspection endpoint with the credentials for it.
type Endpoint struct {
	URL *url.URL
	// ClientID and ClientSecret are sent as HTTP Basic (RFC 6749 section 2.3.1). An empty ClientID
	// sends no credentials: some servers have the endpoint at an internal address instead.
	ClientID, ClientSecret string
	// Timeout bounds the time for an answer. 0: DefaultTimeout.
	Timeout time.Duration
}

// Client calls one endpoint. It is safe for concurrent use.
type Client struct {
	url, authorization string
	timeout            time.Duration
	transport          http.RoundTripper
	reader             *subject.Reader
}

// New returns a Client. The transport must never repeat a request. The reader finds the user in
// answers.
func New(e Endpoint, transport http.RoundTripper, reader *subject.Reader) (*Client, error) {
	if e.URL == nil || transport == nil || reader == nil {
		return nil, errors.New("introspection: URL, Transport and Reader are required")
	}
	c := &Client{url: e.URL.String(), timeout: e.Timeout, transport: transport, reader: reader}
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	if e.ClientID != "" {
		credentials := url.QueryEscape(e.ClientID) + ":" + url.QueryEscape(e.ClientSecret)
		c.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
	}
	return c, nil
}

// StatusError is the error of an answer with a status other than 200.
type StatusError struct{ Status int }

// Error implements error.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("introspection: status %d", e.Status)
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		text += ": the client_id or the client_secret is wrong, or the client may not introspect"
	case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed:
		text += ": the URL is not an introspection endpoint"
	case e.Status >= 300 && e.Status < 400:
		text += ": redirects are not followed"
	}
	return text
}

// The errors of answers that do not follow RFC 7662 section 2.2.
var (
	errTooLarge = fmt.Errorf("introspection: the answer is longer than %d bytes", MaxAnswer)
	errNoAnswer = errors.New("introspection: the answer is not an introspection response")
)

// User returns the user of an access token, or the reason why the user is unknown. The error
// explains a [subject.IntrospectionFailed]. It is nil for every other reason.
func (c *Client) User(ctx context.Context, accessToken string) (user string, reason subject.Reason, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := c.ask(ctx, accessToken)
	if err != nil {
		return "", subject.IntrospectionFailed, err
	}
	if user, reason = c.reader.ReadIntrospection(body); reason == subject.IntrospectionFailed {
		err = errNoAnswer
	}
	return user, reason, err
}

// ask returns the body of an answer with status 200.
func (c *Client) ask(ctx context.Context, accessToken string) ([]byte, error) {
	form := url.Values{"token": {accessToken}, "token_type_hint": {"access_token"}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(form))
	if err != nil {
		return nil, fmt.Errorf("introspection: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "oauth-server")
	if c.authorization != "" {
		req.Header.Set("Authorization", c.authorization)
	}
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("introspection: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was read, or is abandoned
	if res.StatusCode != http.StatusOK {
		return nil, &StatusError{res.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("introspection: read the answer: %w", err)
	case len(body) > MaxAnswer:
		return nil, errTooLarge
	}
	return body, nil
}
