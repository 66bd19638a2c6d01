package tokenclient

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
)

// callback is an authorization response (RFC 6749 sections 4.1.2 and 4.1.2.1,
// RFC 9207 section 2), as parsed and not yet believed.
type callback struct {
	Code, State, Issuer               string
	Error, ErrorDescription, ErrorURI string
}

// expectation is what an authorization response must carry to be believed.
type expectation struct {
	State      string
	Issuer     string
	IssuerSent bool // the server says that it always sends iss
}

// errUnexpected marks a request to the listener that cannot be the answer we
// wait for. Anybody on this machine can send one, so it ends nothing.
var errUnexpected = errors.New("not the answer to this request")

// errIssuer means that the answer comes from another server than the one that
// was asked: the mix-up attack of RFC 9207.
var errIssuer = errors.New("the answer was sent by another issuer")

// parseCallback reads the query of the redirect. A parameter that stands there
// twice makes it invalid (RFC 6749 section 3.1).
func parseCallback(rawQuery string) (callback, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return callback{}, fmt.Errorf("%w: its query cannot be read", errUnexpected)
	}
	var c callback
	for name, field := range map[string]*string{
		"code": &c.Code, "state": &c.State, "iss": &c.Issuer,
		"error": &c.Error, "error_description": &c.ErrorDescription, "error_uri": &c.ErrorURI,
	} {
		switch v := values[name]; len(v) {
		case 0:
		case 1:
			*field = v[0]
		default:
			return callback{}, fmt.Errorf("%w: %s stands there %d times", errUnexpected, name, len(v))
		}
	}
	return c, nil
}

// check returns the code if the answer is to be believed. The state comes
// first: without it nothing else means anything.
func (want expectation) check(c callback) (code string, err error) {
	if subtle.ConstantTimeCompare([]byte(c.State), []byte(want.State)) != 1 {
		return "", fmt.Errorf("%w: its state is wrong", errUnexpected)
	}
	if c.Issuer != want.Issuer && (c.Issuer != "" || want.IssuerSent) {
		return "", fmt.Errorf("%w: iss is %q, not %q", errIssuer, printable(c.Issuer), want.Issuer)
	}
	if c.Error != "" {
		return "", &ServerError{
			Code:        printable(c.Error),
			Description: printable(c.ErrorDescription),
			URI:         printable(c.ErrorURI),
		}
	}
	if c.Code == "" {
		return "", errors.New("the server sent neither a code nor an error")
	}
	return c.Code, nil
}
