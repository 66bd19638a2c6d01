package tokenrequest

import (
	"crypto/sha256"
	"net/http"

	"oauth-server/internal/gateway/subject"
)

// maxName bounds client_id, grant_type and username in bytes. They become parts of counter keys.
// Keycloak's columns for client and user names have 255 characters.
const maxName = 255

// Request holds the parsed fields of a token request. None of them is verified.
type Request struct {
	ClientID string // empty: not in the request
	Grant    string // grant_type as sent; empty: none
	Username string // of a password grant, as sent; empty: none

	RefreshToken subject.Digest // of a refresh_token grant, from subject.DigestOf; zero: none
	Code         subject.Digest // of an authorization_code grant; zero: none
}

// Error is the reason for refusing a request: it violates OAuth, or servers may read it
// differently.
type Error struct {
	Description string // a sentence in the characters of an error_description (RFC 6749 5.2)
}

// Error returns the description.
func (e *Error) Error() string { return "token request: " + e.Description }

func refuse(description string) error { return &Error{description} }

// Read parses a request. header and query belong to the request, and body is the complete body. The
// caller bounds its length. Every error is an [*Error].
//
// Read does not retain body.
func Read(header http.Header, query string, body []byte) (Request, error) {
	r, _, err := ReadAll(header, query, body)
	return r, err
}

// ReadAll is like [Read] and also returns the Credentials of the request.
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

// clientID returns the client named by the header, the body, the assertion and the bearer token.
// They must agree.
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

// grantText returns the grant as a string, without an allocation for common grants.
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

// refreshDigest returns the digest of a refresh token, which is the same for all its spellings.
func refreshDigest(value []byte) subject.Digest {
	if len(value) == 0 {
		return subject.Digest{}
	}
	return subject.DigestOf(string(value))
}

func digest(value []byte) subject.Digest {
	if len(value) == 0 {
		return subject.Digest{}
	}
	return sha256.Sum256(value)
}
