package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
)

// maxBody is the maximum size of a request body in bytes.
const maxBody = 64 << 10

// usualBody is a size in bytes that fits nearly every body.
const usualBody = 1 << 10

const formType = "application/x-www-form-urlencoded"

// readForm reads the parameters of a request to an OAuth endpoint. It reads only the body, because
// queries end up in logs and histories (RFC 6749 2.3.1). It refuses repeated parameters (RFC 6749
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

// checkContentType accepts only the form type. It ignores parameters, which have no meaning for
// that type, because many clients send a charset and some send others.
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
	// The length is only claimed, so the buffer grows with the data.
	buf := bytes.NewBuffer(make([]byte, 0, min(max(r.ContentLength, 0), usualBody)+bytes.MinRead))
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil && r.ContentLength > int64(buf.Len()) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		return buf.String(), nil
	}
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return "", tooLong()
	}
	return "", unreadable(err)
}

func tooLong() error { return invalidRequest("The body is longer than %d bytes.", maxBody) }

// unreadable returns the error for a body that ended early, came too slowly or was badly framed.
// The sender is at fault, so the error is invalid_request.
func unreadable(cause error) error {
	e := invalidRequest("The body could not be read.")
	e.Cause = cause
	return e
}
