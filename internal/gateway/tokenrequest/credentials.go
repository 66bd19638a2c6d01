package tokenrequest

import (
	"bytes"
	"net/http"

	"oauth-server/internal/gateway/subject"
)

// Credentials are digests of the secrets in a request. All spellings that a server may accept for
// one secret have the same digest, and so may other secrets. A digest groups requests and proves
// nothing.
type Credentials struct {
	Secret   subject.Digest // of the client; zero: none, more than one, or an assertion
	Password subject.Digest // of a password grant; zero: none
}

// credentials returns the Credentials of a parsed request with this body.
func (p *params) credentials(header http.Header, body []byte) (c Credentials) {
	var space [512]byte
	encoded, _ := basicCredentials(header.Get("Authorization"))
	_, basic, _ := decodeBasic(encoded, space[:])
	switch body := p.values[clientSecret]; {
	case len(p.values[assertion]) > 0: // servers differ in the one they check
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

// passwordIn returns the password in a body. It returns nil if there is none, or if a form has two,
// because servers differ in which one they use.
func passwordIn(body []byte) (password []byte) {
	if kind := bytes.TrimLeft(body, " \t\r\n"); bytes.HasPrefix(kind, []byte("{")) { // readForm refuses JSON in a form
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

// maxAlike is the number of bytes of a secret that bcrypt uses.
const maxAlike = 72

// alike returns the digest of a secret as the most lenient server reads it: decoded once more, and
// without surrounding space.
func alike(value []byte) subject.Digest {
	if isEscaped(value) {
		value, _ = unescaped(value, nil)
	}
	value = bytes.TrimSpace(value)
	return digest(value[:min(len(value), maxAlike)])
}
