package tokenrequest

import (
	"crypto/sha256"
	"net/http"

	"oauth-server/internal/gateway/subject"
	"oauth-server/internal/secret"
)

// maxName bounds client_id, grant_type and username in bytes: Keycloak's columns for the names of
// clients and users have 255 characters. They become parts of counter keys.
const maxName = 255

// Request is what a token request says of itself. Nothing in it is verified.
type Request struct {
	ClientID string // empty: the request does not say
	Grant    string // grant_type as sent; empty: none
	Username string // of a password grant, as sent; empty: none

	RefreshToken secret.Digest // of a refresh_token grant, as of subject.DigestOf; zero: none
	Code         secret.Digest // of an authorization_code grant; zero: none
}

// Error is why a request is refused: it breaks a rule of OAuth, or two servers could read it
// differently.
type Error struct {
	Description string // a sentence, in the characters of an error_description (RFC 6749 5.2)
}

// Error returns the description.
func (e *Error) Error() string { return "token request: " + e.Description }

func refuse(description string) error { return &Error{description} }

// Read returns what the request says of itself: header and query are those of the request, body is the
// whole body. The caller bounds its length. Every error is an [*Error].
//
// Read keeps nothing of body, so the caller may use it again.
func Read(header http.Header, query string, body []byte) (Request, error) {
	r, _, err := ReadAll(header, query, body)
	return r, err
}

// ReadAll is [Read] that also returns by what the request proves itself.
func ReadAll(header http.Header, query string, body []byte) (Request, Credentials, error) {
	if query != "" {
		if err := checkQuery([]byte(query)); err != nil {
			return Request{}, Credentials{}, err
		}
	}
	if err := checkConnection(header); err != nil {
		return Request{}, Credentials{}, err
	}
	var p params
	if err := p.readBody(header, body); err != nil {
		return Request{}, Credentials{}, err
	}
	if err := p.check(); err != nil {
		return Request{}, Credentials{}, err
	}
	id, err := clientID(header, &p)
	if err != nil {
		return Request{}, Credentials{}, err
	}
	r := Request{ClientID: id, Grant: grantText(p.values[grantType])}
	switch r.Grant {
	case "password":
		r.Username = string(p.values[username])
	case "refresh_token":
		r.RefreshToken = refreshDigest(p.values[refreshToken])
	case "authorization_code":
		r.Code = digest(p.values[code])
	}
	return r, p.credentials(header, body), nil
}

// clientID returns the client that the header, the body, the assertion and the bearer token agree on.
func clientID(header http.Header, p *params) (string, error) {
	var space [256]byte
	basic, err := basicClientID(header, space[:])
	if err != nil {
		return "", err
	}
	asserted, err := assertedClientID(p)
	if err != nil {
		return "", err
	}
	bearer, err := bearerClientID(header, p)
	if err != nil {
		return "", err
	}
	id := ""
	for _, source := range [...][]byte{p.values[client], basic, asserted, bearer} {
		switch {
		case len(source) == 0:
		case id == "":
			id = string(source)
		case id != string(source):
			return "", refuse("The request names different clients.")
		}
	}
	return id, nil
}

// grantText returns the grant without a new string for those that are common.
func grantText(grant []byte) string {
	switch string(grant) {
	case "client_credentials":
		return "client_credentials"
	case "password":
		return "password"
	case "refresh_token":
		return "refresh_token"
	case "authorization_code":
		return "authorization_code"
	}
	return string(grant)
}

// refreshDigest returns the digest of a refresh token, whichever of its writings it is in.
func refreshDigest(value []byte) secret.Digest {
	if len(value) == 0 {
		return secret.Digest{}
	}
	return secret.Digest(subject.DigestOf(string(value)))
}

func digest(value []byte) secret.Digest {
	if len(value) == 0 {
		return secret.Digest{}
	}
	return sha256.Sum256(value) // secret.DigestOf without a copy
}
