package httpapi

import (
	"net/http"

	"oauth-server/internal/grants"
)

// This file answers for a token endpoint that is not ours: that of the server behind the gateway.

// WriteLimited writes the answer to a request over a limit, as the token endpoint of this server does, with that error
// code. It has no error_uri: the paths of the other server are its own. The origin is that of the script that asks, if one
// does; it may read the answer.
func WriteLimited(w http.ResponseWriter, origin string, limited *grants.LimitedError, code grants.ErrorCode) error {
	a := answerToLimited(limited, code, "")
	a.setRetry(w.Header())
	return a.write(w, origin)
}

// WriteError writes an OAuth error (RFC 6749 5.2) with that status, for that origin as WriteLimited does.
func WriteError(w http.ResponseWriter, origin string, status int, code grants.ErrorCode, description string) error {
	a := answer{status: status, body: oauthError{Code: code, Description: describe(description)}}
	return a.write(w, origin)
}

// SetRateLimit adds the RateLimit fields to an answer, unless it has any. Where a script of another site may read the
// answer, it may read them.
func SetRateLimit(h http.Header, r grants.RateLimit) {
	if _, limit := h["Ratelimit"]; limit {
		return
	}
	if _, policy := h["Ratelimit-Policy"]; policy {
		return
	}
	setRateLimit(h, r)
	if r != (grants.RateLimit{}) && h[allowOriginField] != nil {
		h.Add(exposeHeadersField, limitFields)
	}
}

// write writes the status and the body.
func (a *answer) write(w http.ResponseWriter, origin string) error {
	allowOrigin(w.Header(), origin)
	beginJSON(w, a.status)
	_, err := w.Write(a.encoded())
	return err
}
