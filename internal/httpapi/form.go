package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
)

// maxBody is the most that a request body may hold, in bytes.
const maxBody = 64 << 10

// usualBody is what nearly every body fits in, in bytes.
const usualBody = 1 << 10

const formType = "application/x-www-form-urlencoded"

// readForm reads the parameters of a request to an OAuth endpoint: from the body only, never from
// the query, which ends up in logs and histories (RFC 6749 2.3.1), and each at most once (RFC 6749
// 3.2).
func readForm(c *call) (params, error) {
	if c.Request().URL.RawQuery != "" {
		return params{}, invalidRequest("Parameters belong in the request body, not in the query.")
	}
	return readBody(c)
}

// readBody reads a form from the body and refuses repeated parameters.
func readBody(c *call) (params, error) {
	r := c.Request()
	if err := checkContentType(r.Header); err != nil {
		return params{}, err
	}
	raw, err := readAll(r, c.Response())
	if err != nil {
		return params{}, err
	}
	p, err := parseParams(raw)
	if err != nil {
		return params{}, err
	}
	return p, p.once()
}

// checkContentType accepts the form type alone. Parameters have no meaning for it, but many clients send a charset, and some
// others.
func checkContentType(h http.Header) error {
	if enc := h.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return invalidRequest("The body must not be compressed.")
	}
	if types := h["Content-Type"]; len(types) == 1 {
		kind, _, _ := strings.Cut(types[0], ";")
		if strings.EqualFold(strings.Trim(kind, " \t"), formType) {
			return nil
		}
	}
	return invalidRequest("The content type must be %s.", formType)
}

func readAll(r *http.Request, w http.ResponseWriter) (string, error) {
	if r.ContentLength > maxBody {
		return "", tooLong()
	}
	// The length is a claim, so the buffer grows with what comes.
	buf := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), usualBody)+bytes.MinRead))
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil && r.ContentLength > int64(buf.Len()) {
		err = io.ErrUnexpectedEOF
	}
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		return "", tooLong()
	case err != nil:
		return "", unreadable(err)
	}
	return buf.String(), nil
}

func tooLong() error { return invalidRequest("The body is longer than %d bytes.", maxBody) }

// unreadable is the answer to a body that ended early, came too slowly or was badly framed. That is
// the sender's fault, so it is invalid_request.
func unreadable(cause error) error {
	e := invalidRequest("The body could not be read.")
	e.Cause = cause
	return e
}
