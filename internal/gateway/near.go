package gateway

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"time"

	"oauth-server/internal/gateway/tokenpath"
	"oauth-server/internal/gateway/tokenrequest"
)

// isNear reports whether the upstream may lead a request to a token endpoint although its path is another one.
func (g *Gateway) isNear(r *http.Request) bool {
	return slices.ContainsFunc(g.paths, func(p tokenpath.Pattern) bool { return p.NearURL(r.URL) })
}

// asksNear reports whether a request with such a path may be one of tokens. It reads the body, up to what a token request may
// have, and leaves it to be read again. The rest of a longer one is read as it is passed on, which ends the request at the
// upstream if it asks for a token there after all.
func (g *Gateway) asksNear(w http.ResponseWriter, r *http.Request) bool {
	if !g.isNear(r) {
		return false
	}
	if r.ContentLength == 0 {
		return tokenrequest.MayAsk(r.Header, r.URL.RawQuery, nil)
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // a connection that has none is one of a test
	begin, err := io.ReadAll(io.LimitReader(r.Body, MaxBody))
	asks, rest := err != nil || tokenrequest.MayAsk(r.Header, r.URL.RawQuery, begin), io.Reader(r.Body)
	if !asks {
		_ = control.SetReadDeadline(time.Time{})
		rest = tokenrequest.Watch(begin, rest, ErrTooLarge)
	}
	r.Body = body{io.MultiReader(bytes.NewReader(begin), rest), r.Body}
	return asks
}

// body is one that is read from elsewhere.
type body struct {
	io.Reader
	io.Closer
}
