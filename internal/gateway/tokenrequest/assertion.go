package tokenrequest

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// The client_assertion_types with a JWT as the assertion: RFC 7523 2.2, and
// draft-ietf-oauth-spiffe-client-auth, which Keycloak supports.
const (
	jwtBearer = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" //nolint:gosec // G101: a name
	jwtSPIFFE = "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe" //nolint:gosec // G101: a name
)

// assertedClientID returns the sub of the client assertion, which is the client_id (RFC 7523 3). It
// returns an empty ID if there is no assertion or its type is another one. The server behind the
// gateway verifies the assertion.
//
// If the issuer of an assertion differs from its subject, the client did not issue it itself. Some
// servers refuse such an assertion anyway. Others accept assertions of trusted issuers (workload
// identity), with a sub chosen by the issuer. So in that case the sub is the client only if there
// is no client_id.
func assertedClientID(p *params) ([]byte, error) {
	token, kind := p.values[assertion], p.values[assertionType]
	switch {
	case len(token) == 0:
		return nil, nil
	case len(kind) == 0:
		return nil, refuse("There is a client_assertion without a client_assertion_type.")
	case string(kind) != jwtBearer && string(kind) != jwtSPIFFE:
		return nil, nil
	}
	payload, ok := jwtPayload(token)
	if !ok {
		return nil, refuse("The client_assertion is not a signed JWT.")
	}
	issuer, id, err := parties(payload)
	switch {
	case err != nil:
		return nil, err
	case len(id) == 0:
		return nil, refuse("The client_assertion has no claim sub.")
	case len(issuer) > 0 && !bytes.Equal(issuer, id) && len(p.values[client]) > 0:
		return nil, nil
	}
	return id, checkValue(client, id)
}

// jwtPayload returns the second of the three parts of a signed JWT (RFC 7515 7.1). An encrypted JWT
// has five parts and is rejected.
func jwtPayload(token []byte) (payload []byte, ok bool) {
	if bytes.Count(token, []byte(".")) != 2 {
		return nil, false
	}
	_, rest := cut(token, '.')
	encoded, _ := cut(rest, '.')
	payload, err := base64.RawURLEncoding.AppendDecode(nil, encoded)
	return payload, err == nil
}

// parties returns the iss and sub claims, empty if missing.
func parties(claims []byte) (issuer, sub []byte, err error) {
	err = eachField("The client_assertion", claims, func(claim string, value []byte) error {
		at, name := &sub, "sub"
		if strings.EqualFold(claim, "iss") {
			at, name = &issuer, "iss"
		}
		if !strings.EqualFold(claim, name) {
			return nil
		}
		var ok bool
		if *at, ok = jsonText(value); !ok || claim != name {
			return refuse("The claim " + name + " of the client_assertion is not a string, or its name is not in lower case.")
		}
		return nil
	})
	return issuer, sub, err
}
