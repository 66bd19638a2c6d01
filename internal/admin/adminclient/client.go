package adminclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg/redirecturi"
)

// maxAnswer is the maximum size of a response, in bytes.
const maxAnswer = 64 << 20

// Client calls the API of one server.
type Client struct {
	Server string // such as http://127.0.0.1:9097
	HTTP   *http.Client
	// Token returns a bearer token of that issuer: another one than refused, which the server has
	// rejected. refused is empty at first.
	Token func(ctx context.Context, issuer, refused string) (string, error)
	// Issuer is the URL of the server that issues tokens. Empty: Server itself. No response can
	// change it, because the client secret is sent there.
	Issuer string
	Header http.Header // sent with every request; may be nil
	// Reason goes into the audit trail with every change. Confirmed is the client or user that may be
	// changed even if that locks operators out.
	Reason, Confirmed string
	// Timeout limits each call, including getting a token, except [Client.Stream]. 0 means no limit.
	Timeout time.Duration
	// Aged is called with the age of a response that may not show the newest state. Nil: not
	// called.
	Aged func(age time.Duration)
}

// Change is a request that changes a resource, or only shows the effect of a change.
type Change struct {
	Method, Path string
	Query        url.Values // besides the parameters below; nil for none
	ETag         string     // If-Match; empty: If-None-Match: *
	For          string     // duration of the change; empty: permanent
	Validate     bool       // change nothing
	Body         any        // JSON; nil for none
}

// CheckServer returns an error if it is unsafe to send a token to the address.
func CheckServer(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || !redirecturi.IsHTTP(u) || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q is not the address of a server, such as http://127.0.0.1:9097", address)
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && redirecturi.IsLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q would send the token unencrypted: use https, or a loopback address", address)
}

// Get reads a resource into v and returns its ETag.
func (c *Client) Get(ctx context.Context, path string, query url.Values, v any) (etag string, err error) {
	return c.call(ctx, http.MethodGet, path, query, nil, nil, v)
}

// Change makes the change, decodes the response into v unless v is nil, and returns the new ETag.
func (c *Client) Change(ctx context.Context, ch Change, v any) (etag string, err error) {
	query, header := url.Values{}, http.Header{}
	maps.Copy(query, ch.Query)
	for name, value := range map[string]string{"reason": c.Reason, "confirm": c.Confirmed, "for": ch.For} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if ch.Validate {
		query.Set("validate", "true")
	}
	if ch.ETag != "" {
		header.Set("If-Match", ch.ETag)
	} else {
		header.Set("If-None-Match", "*")
	}
	var body []byte
	if ch.Body != nil {
		if body, err = json.Marshal(ch.Body); err != nil {
			return "", fmt.Errorf("adminclient: encode: %w", err)
		}
		header.Set("Content-Type", "application/json")
		if ch.Method == http.MethodPatch {
			header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	etag, err = c.call(ctx, ch.Method, ch.Path, query, header, body, v)
	var p *ProblemError
	if errors.As(err, &p) {
		p.Unanswered = p.Status == http.StatusServiceUnavailable && p.RetryAfter == 0
	}
	return etag, err
}

// Do is [Client.Change] of a resource in any state, without its ETag. in is the body, and out receives
// the response; either may be nil.
func (c *Client) Do(ctx context.Context, method, path string, in, out any) error {
	_, err := c.Change(ctx, Change{Method: method, Path: path, ETag: "*", Body: in}, out)
	return err
}

// call sends a request. If its token is rejected, it retries once with another one.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, header http.Header, body []byte, v any) (etag string, err error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	token := ""
	for range 2 {
		var res *http.Response
		if token, res, err = c.send(ctx, method, path, query, header, body, token); err != nil { //nolint:bodyclose // read closes it
			return "", err
		}
		c.noteAge(res)
		etag, err = read(res, v)
		var p *ProblemError
		if !errors.As(err, &p) || p.Status != http.StatusUnauthorized {
			break
		}
	}
	return etag, err
}

func (c *Client) noteAge(res *http.Response) {
	seconds, err := strconv.ParseUint(res.Header.Get(adminapi.AgeHeader), 10, 31)
	if err == nil && c.Aged != nil {
		c.Aged(time.Duration(seconds) * time.Second)
	}
}

// base returns Server without the path of the API, which the user may have pasted too.
func (c *Client) base() string {
	return strings.TrimSuffix(strings.TrimRight(c.Server, "/"), adminapi.Prefix)
}

// ErrNoAPI is returned if the address answers, but does not serve this API.
var ErrNoAPI = errors.New("not the admin address of a server")

// send sends a request with a token other than refused, which it returns.
func (c *Client) send(
	ctx context.Context, method, path string, query url.Values, header http.Header, body []byte, refused string,
) (token string, res *http.Response, err error) {
	if err := CheckServer(c.Server); err != nil {
		return "", nil, err
	}
	if token, err = c.Token(ctx, cmp.Or(c.Issuer, c.base()), refused); err != nil {
		return "", nil, err
	}
	address := c.base() + adminapi.Prefix + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return "", nil, fmt.Errorf("adminclient: %w", err)
	}
	for _, h := range []http.Header{c.Header, header} {
		maps.Copy(req.Header, h)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err = c.HTTP.Do(req)
	return token, res, err
}

// read decodes a response into v and returns its ETag. It closes the body.
func read(res *http.Response, v any) (etag string, err error) {
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	if res.StatusCode < http.StatusOK || res.StatusCode >= http.StatusMultipleChoices {
		return "", refusal(res, body)
	}
	if v != nil && len(body) > 0 {
		if err := json.Unmarshal(body, v); err != nil {
			return "", fmt.Errorf("%w: the response is not JSON: %w", ErrNoAPI, err)
		}
	}
	return res.Header.Get("ETag"), nil
}
