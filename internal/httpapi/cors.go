package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"oauth-server/internal/limiter/oautherr"
)

var (
	headerAnyOrigin  = []string{"*"}
	headerVaryOrigin = []string{"Origin"}
)

// allowedHeaders returns the fields that scripts of other sites may send: the OAuth fields, and the
// wanted fields that monitoring and HTTP libraries add. Other fields, such as forwarded addresses,
// could impersonate someone else where the browser is trusted.
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

// harmlessHeaders and harmlessPrefixes are used by W3C Trace Context and Baggage, Zipkin, Jaeger,
// Sentry, Datadog, New Relic, Elastic, Instana, Azure, AWS and Google Cloud, and by HTTP libraries.
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

// isTokenText reports whether s contains only lower-case letters, digits and hyphens, so it is safe
// in a list.
func isTokenText(s string) bool {
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// preflight lets scripts of any website call the endpoints that browser apps need
// (draft-ietf-oauth-browser-based-apps). None of these endpoints reads cookies, so such a script
// can do nothing that its author could not do without a browser. If the request is a CORS
// preflight, preflight answers it and returns true.
func (s *Server) preflight(c *call) (answered bool) {
	r := c.Request()
	if !s.shared[r.URL.Path] {
		return false
	}
	h := c.Response().Header()
	h["Vary"] = headerVaryOrigin // otherwise a browser may reuse a cached answer of another request
	if r.Header.Get("Origin") == "" {
		return false
	}
	h["Access-Control-Allow-Origin"] = headerAnyOrigin
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", oautherr.ExposedFields())
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Headers", allowedHeaders(r.Header["Access-Control-Request-Headers"]))
	h.Set("Access-Control-Max-Age", "7200")
	c.Response().WriteHeader(http.StatusNoContent)
	return true
}
