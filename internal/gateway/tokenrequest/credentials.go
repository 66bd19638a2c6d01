package tokenrequest

import (
	"bytes"
	"net/http"

	"oauth-server/internal/secret"
)

// Credentials are the secrets of a request. All writings of a secret that a server may take for one have one digest, and so
// may others: a digest groups requests, and proves nothing.
type Credentials struct {
	Secret   secret.Digest // of the client; zero: there is none, or more than one, or an assertion
	Password secret.Digest // of a password grant; zero: there is none
}

// credentials returns those of a request that was read, of the body.
func (p *params) credentials(header http.Header, body []byte) (c Credentials) {
	var space [512]byte
	encoded, _ := basicCredentials(header.Get("Authorization"))
	_, basic, _ := decodeBasic(encoded, space[:])
	switch body := p.values[clientSecret]; {
	case len(p.values[assertion]) > 0: // which of them counts differs
	case len(basic) == 0:
		c.Secret = alike(body)
	case len(body) == 0:
		c.Secret = alike(basic)
	}
	if string(p.values[grantType]) == "password" {
		c.Password = alike(passwordIn(body))
	}
	return c
}

// passwordIn returns the password in a body; nil if it has none, or two, of which servers take either.
func passwordIn(body []byte) (password []byte) {
	if kind := bytes.TrimLeft(body, " \t\r\n"); bytes.HasPrefix(kind, []byte("{")) { // readForm refuses it
		_ = eachField("The body", body, func(name string, value []byte) error {
			if name == "password" {
				password, _ = jsonText(value)
			}
			return nil
		})
		return password
	}
	for len(body) > 0 {
		var param []byte
		param, body = cut(body, '&')
		name, value := cut(param, '=')
		if name, _ = unescaped(name, nil); string(name) != "password" {
			continue
		}
		if password != nil {
			return nil
		}
		password, _ = unescaped(value, nil)
	}
	return password
}

// maxAlike is how much of a secret bcrypt looks at.
const maxAlike = 72

// alike returns the digest of a secret as the most lenient server reads it: decoded once more, without space around it.
func alike(value []byte) secret.Digest {
	if isEscaped(value) {
		value, _ = unescaped(value, nil)
	}
	value = bytes.TrimSpace(value)
	return digest(value[:min(len(value), maxAlike)])
}
