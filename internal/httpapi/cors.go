package httpapi

import (
	"net/http"

	"oauth-server/internal/ratelimit"
)

const (
	allowOriginField   = "Access-Control-Allow-Origin"
	exposeHeadersField = "Access-Control-Expose-Headers"
)

var (
	headerAnyOrigin  = []string{"*"}
	headerVaryOrigin = []string{"Origin"}
)

// limitFields are the fields about limits, which [SetRateLimit] adds; exposed are all fields of our own answers that scripts
// of other sites may read.
var (
	limitFields = ratelimit.Fields().Limit + ", " + ratelimit.Fields().Policy
	exposed     = "Retry-After, " + limitFields + ", WWW-Authenticate, X-Request-Id"
)

// allowOrigin lets scripts of other sites read an answer in which nothing depends on cookies; without it they see a
// failure of the network in place of it. The origin is that of the request. It is named, so that a script that sent cookies may read
// the answer, too; empty stands for every origin. What an outer handler has said is left as it is.
func allowOrigin(h http.Header, origin string) {
	if _, said := h[allowOriginField]; !said {
		h[allowOriginField] = headerAnyOrigin
		if origin != "" {
			h.Set(allowOriginField, origin)
			h.Set("Access-Control-Allow-Credentials", "true")
		}
		h.Add("Vary", "Origin")
	}
	h.Add(exposeHeadersField, exposed)
}

// preflight lets scripts of any web site call the endpoints that apps in a browser need
// (draft-ietf-oauth-browser-based-apps). None of them reads cookies, so such a script can do
// nothing there that its author could not do from elsewhere. If the request is a CORS preflight, it
// is answered and true is returned.
func (s *Server) preflight(c *call) (answered bool) {
	r := c.Request()
	if !s.shared[r.URL.Path] {
		return false
	}
	h := c.Response().Header()
	h["Vary"] = headerVaryOrigin // or a browser takes what it has kept of another request
	if r.Header.Get("Origin") == "" {
		return false
	}
	h[allowOriginField] = headerAnyOrigin
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set(exposeHeadersField, exposed)
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
	h.Set("Access-Control-Max-Age", "7200")
	c.Response().WriteHeader(http.StatusNoContent)
	return true
}
