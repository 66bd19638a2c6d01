// Package oautherr holds the refusals of a token endpoint: the error codes of OAuth 2.0, the refusal
// of a request over a rate limit, and the answers that both get over HTTP (RFC 6749 section 5.2).
//
// The server and the gateway share it, so a client gets the same answer from both:
//
//	fields, err := oautherr.Of(key, &decision)
//	if limited, ok := errors.AsType[*oautherr.LimitedError](err); ok {
//		answer := oautherr.AnswerTo(limited, oautherr.TemporarilyUnavailable, "")
//		return answer.Write(w, r.Header.Get("Origin"))
//	}
//
// The package decides nothing and keeps no state.
package oautherr
