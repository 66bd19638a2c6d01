package httpapi

import (
	"net/http"
	"slices"
	"strings"

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

// allowedHeaders returns the fields that scripts of other sites may send: those of OAuth, and of what they want to send those that
// browsers do not add themselves but monitoring and HTTP libraries do. Others, such as forwarded addresses, could stand for somebody
// else where the browser is trusted.
func allowedHeaders(wanted []string) string {
	allowed := "Authorization, Content-Type"
	for _, list := range wanted {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.ToLower(strings.Trim(name, " \t")); isAllowedHeader(name) && len(allowed) < 1024 {
				allowed += ", " + name
			}
		}
	}
	return allowed
}

// harmlessHeaders and harmlessPrefixes are of W3C Trace Context and Baggage, Zipkin, Jaeger, Sentry, Datadog, New Relic, Elastic,
// Instana, Azure, AWS and Google Cloud, and of HTTP libraries.
var (
	harmlessHeaders = map[string]bool{
		"traceparent": true, "tracestate": true, "baggage": true, "b3": true, "uber-trace-id": true, "sentry-trace": true, "newrelic": true,
		"elastic-apm-traceparent": true, "x-cloud-trace-context": true, "x-amzn-trace-id": true, "request-id": true, "request-context": true,
		"correlation-id": true, "trace-id": true, "accept": true, "accept-language": true, "cache-control": true, "pragma": true,
		"x-requested-with": true,
	}
	harmlessPrefixes = []string{"x-b3-", "x-datadog-", "x-instana-", "x-ot-span-", "ot-tracer-", "uberctx-", "x-request-", "x-correlation-", "x-trace-"}
)

func isAllowedHeader(name string) bool {
	return harmlessHeaders[name] || len(name) <= 64 && isTokenText(name) &&
		slices.ContainsFunc(harmlessPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// isTokenText reports whether a text has only letters, digits and hyphens, so that it is safe in a list.
func isTokenText(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
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
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Headers", allowedHeaders(r.Header["Access-Control-Request-Headers"]))
	h.Set("Access-Control-Max-Age", "7200")
	c.Response().WriteHeader(http.StatusNoContent)
	return true
}
