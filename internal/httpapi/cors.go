package httpapi

import (
	"net/http"

	"oauth-server/internal/ratelimit"
)

var headerAnyOrigin = []string{"*"}

// exposed are the fields of answers that scripts of other sites may read.
var exposed = "Retry-After, " + ratelimit.Fields().Limit + ", " + ratelimit.Fields().Policy + ", WWW-Authenticate, X-Request-Id"

// preflight lets scripts of any web site call the endpoints that apps in a browser need
// (draft-ietf-oauth-browser-based-apps). None of them reads cookies, so such a script can do
// nothing there that its author could not do from elsewhere. If the request is a CORS preflight, it
// is answered and true is returned.
func (s *Server) preflight(c *call) (answered bool) {
	r := c.Request()
	if r.Header.Get("Origin") == "" || !s.shared[r.URL.Path] {
		return false
	}
	h := c.Response().Header()
	h["Access-Control-Allow-Origin"] = headerAnyOrigin
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", exposed)
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
	h.Set("Access-Control-Max-Age", "7200")
	c.Response().WriteHeader(http.StatusNoContent)
	return true
}
