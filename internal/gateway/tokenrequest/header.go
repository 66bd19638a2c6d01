package tokenrequest

import (
	"encoding/base64"
	"mime"
	"net/http"
	"strings"
)

const (
	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// maxBasic bounds the HTTP Basic credentials, in bytes of base64.
const maxBasic = 8 << 10

// checkConnection refuses a request if its Connection field would make a proxy remove a header
// field that the gateway reads (RFC 9110 section 7.6.1).
func checkConnection(header http.Header) error {
	for _, field := range header["Connection"] {
		for name := range strings.SplitSeq(field, ",") {
			switch http.CanonicalHeaderKey(strings.Trim(name, " \t")) {
			case "Authorization", "Content-Type", "Content-Encoding":
				return refuse("The Connection header names an end-to-end field.")
			}
		}
	}
	return nil
}

// readBody parses the checked parameters of the body according to its header.
func (p *params) readBody(header http.Header, body []byte) error {
	for _, encoding := range header["Content-Encoding"] {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return refuse("The body must not be compressed.")
		}
	}
	kind, onlyASCII, err := mediaType(header["Content-Type"])
	p.onlyASCII = onlyASCII
	switch {
	case err != nil:
		return err
	case kind == formType:
		return p.readForm(string(body))
	case kind == jsonType:
		return p.readJSON(body)
	case kind == "" && len(body) == 0:
		return nil
	}
	return refuse("The content type must be " + formType + " or " + jsonType + ".")
}

// mediaType returns the content type without its parameters, or an empty string if it is missing.
// onlyASCII is set if the charset agrees with UTF-8 only for ASCII.
func mediaType(fields []string) (kind string, onlyASCII bool, err error) {
	switch {
	case len(fields) == 0:
		return "", false, nil
	case len(fields) > 1:
		return "", false, refuse("There is more than one Content-Type.")
	case fields[0] == "" || fields[0] == formType || fields[0] == jsonType:
		return fields[0], false, nil
	}
	kind, attributes, err := mime.ParseMediaType(fields[0])
	if err != nil {
		return "", false, refuse("The Content-Type is malformed.")
	}
	if kind != formType && kind != jsonType {
		return "", false, refuse("The content type must be " + formType + " or " + jsonType + ".")
	}
	for attribute, value := range attributes {
		switch charset := strings.ToLower(value); {
		case attribute == "charset" && (charset == "utf-8" || charset == "utf8"):
		case attribute == "charset" && kind == formType && (charset == "iso-8859-1" || charset == "us-ascii"):
			onlyASCII = true // Apache HttpClient sends iso-8859-1 by default
		case attribute == "charset" || strings.Contains(attribute+charset, "charset"): // a server may search for charset anywhere
			return "", false, refuse("The charset of the Content-Type must be utf-8, or for a form also iso-8859-1.")
		}
	}
	return kind, onlyASCII, nil
}

// readBasic reads the client and its secret from HTTP Basic. The secret is not checked, because many
// clients do not encode it as RFC 6749 2.3.1 requires.
func (p *params) readBasic(fields []string) error {
	switch {
	case len(fields) == 0:
		return nil
	case len(fields) > 1:
		return refuse("There is more than one Authorization header.")
	}
	encoded, ok := basicCredentials(fields[0])
	if !ok {
		return nil
	}
	encoded = strings.TrimRight(encoded, "=") // some servers do not require padding; the others read no other client
	if encoded == "Og" {                      // just a colon, without user and password: the client can only be in the body
		return nil
	}
	text, err := base64.RawStdEncoding.DecodeString(encoded)
	id, secret, found := strings.Cut(string(text), ":")
	id, malformed := unescaped(id)
	if err != nil || malformed != nil || !found || id == "" || len(encoded) > maxBasic {
		return refuse("The Authorization header is not well-formed HTTP Basic.")
	}
	p.basic, p.basicSecret = id, secret
	return checkValue(client, id)
}

// basicCredentials returns the credentials after the scheme Basic. Some servers check only the
// beginning of the field, so any field that begins with Basic counts as Basic. [params.readBasic]
// refuses malformed ones.
func basicCredentials(field string) (encoded string, ok bool) {
	const scheme = "Basic"
	field = strings.TrimLeft(field, " \t")
	if len(field) < len(scheme) || !strings.EqualFold(field[:len(scheme)], scheme) {
		return "", false
	}
	rest := field[len(scheme):]
	encoded = strings.TrimLeft(rest, " \t") // RFC 9110 section 11.4 allows several spaces
	if encoded == rest {
		return "", true
	}
	return encoded, true
}
