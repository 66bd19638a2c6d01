package adminclient

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Stream copies the response to a GET to w, of any length, and returns its length in bytes. A
// truncated response is an error. The timeout of the HTTP client must be zero or long enough.
func (c *Client) Stream(ctx context.Context, path string, query url.Values, w io.Writer) (n int64, err error) {
	_, res, err := c.send(ctx, http.MethodGet, path, query, nil, nil, "")
	if err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK {
		if _, err = read(res, nil); err == nil {
			err = fmt.Errorf("%w: the response is %s", ErrNoAPI, res.Status)
		}
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	return io.Copy(w, res.Body)
}
