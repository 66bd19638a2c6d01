package tokenrequest

import (
	"net/http"
	"strings"

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
func Read(header http.Header, query string, body []byte) (Request, Credentials, error) {
	var p params
	id, err := p.read(header, query, body)
	if err != nil {
		return Request{}, Credentials{}, err
	}
	// The values are parts of the body, which would stay in memory with them.
	r := Request{ClientID: strings.Clone(id), Grant: strings.Clone(p.values[grantType])}
	switch r.Grant {
	case "password":
		r.Username = strings.Clone(p.values[username])
	case "refresh_token":
		if token := p.values[refreshToken]; token != "" {
			r.RefreshToken = subject.DigestOf(token)
		}
	}
	return r, p.credentials(), nil
}

// read parses and checks everything, and returns the client.
func (p *params) read(header http.Header, query string, body []byte) (clientID string, err error) {
	if err := checkQuery(query); err != nil {
		return "", err
	}
	if err := checkConnection(header); err != nil {
		return "", err
	}
	if err := p.readBody(header, body); err != nil {
		return "", err
	}
	if err := p.check(); err != nil {
		return "", err
	}
	return p.clientID(header)
}

// clientID returns the client named by the header, the body, the assertion and the bearer token.
// They must agree.
func (p *params) clientID(header http.Header) (id string, err error) {
	if err := p.readBasic(header["Authorization"]); err != nil {
		return "", err
	}
	asserted, err := p.assertedClientID()
	if err != nil {
		return "", err
	}
	bearer, err := p.bearerClientID(header.Get("Authorization"))
	if err != nil {
		return "", err
	}
	for _, source := range []string{p.values[client], p.basic, asserted, bearer} {
		switch {
		case source == "":
		case id == "":
			id = source
		case id != source:
			return "", refuse("The request names different clients.")
		}
	}
	return id, nil
}

// Credentials are digests of the secrets in a request. All spellings that a server may accept for
// one secret have the same digest, and so may other secrets. A digest groups requests and proves
// nothing.
type Credentials struct {
	Secret   subject.Digest // of the client; zero: none, more than one, or an assertion
	Password subject.Digest // of a password grant; zero: none, or more than one
}

func (p *params) credentials() (c Credentials) {
	switch body := p.values[clientSecret]; {
	case p.values[assertion] != "": // servers differ in the one they check
	case p.basicSecret == "":
		c.Secret = alike(body)
	case body == "":
		c.Secret = alike(p.basicSecret)
	}
	if p.values[grantType] == "password" && len(p.passwords) == 1 {
		c.Password = alike(p.passwords[0])
	}
	return c
}

// maxAlike is the number of bytes of a secret that bcrypt uses.
const maxAlike = 72

// alike returns the digest of a secret as the most lenient server reads it: decoded once more, and
// without surrounding space.
func alike(value string) subject.Digest {
	if decoded, err := unescaped(value); err == nil {
		value = decoded
	}
	if value = strings.TrimSpace(value); value == "" {
		return subject.Digest{}
	}
	return subject.NameDigest(value[:min(len(value), maxAlike)])
}
