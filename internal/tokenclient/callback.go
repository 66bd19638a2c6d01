package tokenclient

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/url"
)

// callback is an authorization response (RFC 6749 sections 4.1.2 and 4.1.2.1, RFC 9207 section 2),
// parsed and not checked.
type callback struct {
	Code, State, Issuer               string
	Error, ErrorDescription, ErrorURI string
}

// expectation is what an authorization response must carry to be accepted.
type expectation struct {
	State      string
	Issuer     string
	IssuerSent bool // the metadata announces iss in every response
}

// errUnexpected marks a request to the listener that is not the expected response. Every process on
// this machine can send one, so the listener keeps waiting.
var errUnexpected = errors.New("not the answer to this request")

// errIssuer means that the response comes from another server, as in the mix-up attack of RFC 9207.
var errIssuer = errors.New("the answer was sent by another issuer")

// parseCallback reads the query of the redirect. A repeated parameter makes it invalid (RFC 6749
// section 3.1).
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
			return callback{}, fmt.Errorf("%w: it has %s %d times", errUnexpected, name, len(v))
		}
	}
	return c, nil
}

// check returns the code if the response is accepted. The state is checked first: without it the
// rest may come from anywhere.
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
