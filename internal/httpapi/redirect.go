package httpapi

import (
	"net/http"
	"net/url"
	"strings"

	"oauth-server/internal/grants"
	"oauth-server/internal/limiter/oautherr"
)

// redirectToClient redirects the browser to the client with an authorization response (RFC 6749
// 4.1.2) that contains the issuer (RFC 9207). The status is 303, so a browser never repeats a
// posted password or consent (RFC 9700 4.12). uri must come from a [grants.Prompt] or a
// [grants.RedirectError].
func (s *Server) redirectToClient(c *call, uri, state string, response url.Values) error {
	if state != "" {
		response.Set("state", state)
	}
	response.Set("iss", s.o.Issuer)
	return seeOther(c, addQuery(uri, response))
}

// redirectError sends an error of the authorization request to the client (RFC 6749 4.1.2.1).
func (s *Server) redirectError(c *call, uri, state string, e *grants.Error) error {
	c.outcome, c.shed = string(e.Code), shedBy(e)
	response := url.Values{"error": {string(e.Code)}}
	if e.Description != "" {
		response.Set("error_description", oautherr.Describe(e.Description))
	}
	return s.redirectToClient(c, uri, state, response)
}

// seeOther answers with a redirect that must not be cached and has no body.
func seeOther(c *call, location string) error {
	h := c.Response().Header()
	h.Set("Location", location)
	oautherr.NoStore(h)
	c.Response().WriteHeader(http.StatusSeeOther)
	return nil
}

// addQuery appends parameters to the URI and leaves the rest of it unchanged, byte for byte (RFC
// 6749 3.1.2). Registered URIs have no fragment.
func addQuery(uri string, response url.Values) string {
	switch {
	case !strings.Contains(uri, "?"):
		return uri + "?" + response.Encode()
	case strings.HasSuffix(uri, "?"), strings.HasSuffix(uri, "&"):
		return uri + response.Encode()
	}
	return uri + "&" + response.Encode()
}
