package gateway

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"time"

	"oauth-server/internal/gateway/tokenrequest"
)

// isNear reports whether the upstream may route a request to a token endpoint although its path
// differs.
func (g *Gateway) isNear(r *http.Request) bool {
	return slices.ContainsFunc(g.paths, func(p tokenrequest.PathPattern) bool { return p.NearURL(r.URL) })
}

// asksNear reports whether a request with such a path may be a token request. It reads up to
// MaxBody bytes of the body and makes them readable again. If the body is longer, the rest is
// inspected while it is forwarded. If the rest turns out to ask for a token, reading fails, which
// aborts the request at the upstream.
func (g *Gateway) asksNear(w http.ResponseWriter, r *http.Request) bool {
	if !g.isNear(r) {
		return false
	}
	if r.ContentLength == 0 {
		return tokenrequest.MayAsk(r.Header, r.URL.RawQuery, nil)
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // fails only in tests
	begin, err := io.ReadAll(io.LimitReader(r.Body, MaxBody))
	asks, rest := err != nil || tokenrequest.MayAsk(r.Header, r.URL.RawQuery, begin), io.Reader(r.Body)
	if !asks {
		_ = control.SetReadDeadline(time.Time{})
		rest = tokenrequest.Watch(begin, rest, ErrTooLarge)
	}
	r.Body = body{io.MultiReader(bytes.NewReader(begin), rest), r.Body}
	return asks
}

// body is a request body with a separate reader.
type body struct {
	io.Reader
	io.Closer
}
