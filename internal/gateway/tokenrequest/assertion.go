package tokenrequest

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// jwtBearer is the client_assertion_type whose assertion is a JWT (RFC 7523 2.2).
const jwtBearer = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" //nolint:gosec // G101: a name

// assertedClientID returns the sub of the client assertion, which is the client_id (RFC 7523 3); empty
// if there is no assertion or one of another type. The server behind the gateway verifies it.
func assertedClientID(p *params) ([]byte, error) {
	token, kind := p.values[assertion], p.values[assertionType]
	switch {
	case len(token) == 0:
		return nil, nil
	case len(kind) == 0:
		return nil, refuse("There is a client_assertion without a client_assertion_type.")
	case string(kind) != jwtBearer:
		return nil, nil
	}
	payload, ok := jwtPayload(token)
	if !ok {
		return nil, refuse("The client_assertion is not a signed JWT.")
	}
	id, err := subject(payload)
	switch {
	case err != nil:
		return nil, err
	case len(id) == 0:
		return nil, refuse("The client_assertion has no claim sub.")
	}
	return id, checkValue(client, id)
}

// jwtPayload returns the second of the three parts of a signed JWT (RFC 7515 7.1). An encrypted one has
// five.
func jwtPayload(token []byte) (payload []byte, ok bool) {
	if bytes.Count(token, []byte(".")) != 2 {
		return nil, false
	}
	_, rest := cut(token, '.')
	encoded, _ := cut(rest, '.')
	payload, err := base64.RawURLEncoding.AppendDecode(nil, encoded)
	return payload, err == nil
}

// subject returns the sub of the claims, empty if there is none.
func subject(claims []byte) (sub []byte, err error) {
	err = eachField("The client_assertion", claims, func(claim string, value []byte) error {
		if !strings.EqualFold(claim, "sub") {
			return nil
		}
		var ok bool
		if sub, ok = jsonText(value); !ok || claim != "sub" {
			return refuse("The claim sub of the client_assertion is not a string, or its name is not in lower case.")
		}
		return nil
	})
	return sub, err
}
