package tokenrequest

import (
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
func (p *params) assertedClientID() (string, error) {
	token, kind := p.values[assertion], p.values[assertionType]
	switch {
	case token == "":
		return "", nil
	case kind == "":
		return "", refuse("The client_assertion_type is missing.")
	case kind != jwtBearer && kind != jwtSPIFFE:
		return "", nil
	}
	payload, ok := jwtPayload(token)
	if !ok {
		return "", refuse("The client_assertion is not a signed JWT.")
	}
	issuer, id, err := parties(payload)
	switch {
	case err != nil:
		return "", err
	case id == "":
		return "", refuse("The client_assertion has no claim sub.")
	case issuer != "" && issuer != id && p.values[client] != "":
		return "", nil
	}
	return id, checkValue(client, id)
}

// jwtPayload returns the second of the three parts of a signed JWT (RFC 7515 7.1). An encrypted JWT
// has five parts and is rejected.
func jwtPayload(token string) (payload []byte, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	return payload, err == nil
}

// parties returns the iss and sub claims, empty if missing.
func parties(claims []byte) (issuer, sub string, err error) {
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

// umaGrant requests permissions (UMA 2.0). With a bearer token, Keycloak uses the client of that
// token and ignores the client_id in the body.
const umaGrant = "urn:ietf:params:oauth:grant-type:uma-ticket"

// bearerClientID returns the client of the access token that authenticates a request for
// permissions, from its claim azp. It returns an empty ID for other requests, or if the token is
// not a JWT. The server behind the gateway verifies the token.
func (p *params) bearerClientID(authorization string) (id string, err error) {
	words := strings.Fields(authorization)
	if p.values[grantType] != umaGrant || len(words) != 2 ||
		!strings.EqualFold(words[0], "Bearer") && !strings.EqualFold(words[0], "DPoP") {
		return "", nil
	}
	payload, ok := jwtPayload(words[1])
	if !ok {
		return "", nil
	}
	err = eachField("The bearer token", payload, func(claim string, value []byte) error {
		if claim != "azp" {
			return nil
		}
		if id, ok = jsonText(value); !ok {
			return refuse("The claim azp of the bearer token is not a string.")
		}
		return nil
	})
	if err != nil || id == "" {
		return "", err
	}
	return id, checkValue(client, id)
}
