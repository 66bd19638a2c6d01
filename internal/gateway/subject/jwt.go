package subject

import (
	"bytes"
	"encoding/base64"
)

// encoding is that of the parts of a JWT (RFC 7515 section 2).
var encoding = base64.RawURLEncoding.Strict()

// payloadOf appends the payload of a signed JWT in compact form (RFC 7515 section 3.1) to dst, and
// reports whether the token is one by its form: three parts, the first of them a JSON object. Nothing
// is verified, and the payload is not looked at.
func payloadOf(dst, token []byte) ([]byte, bool) {
	header, rest, ok := bytes.Cut(token, []byte("."))
	if !ok {
		return nil, false
	}
	payload, signature, ok := bytes.Cut(rest, []byte("."))
	if !ok || bytes.IndexByte(signature, '.') >= 0 {
		return nil, false
	}
	var buffer [256]byte
	decoded, ok := decode(buffer[:0], header)
	if !ok {
		return nil, false
	}
	if _, ok = find(decoded, nil, nil); !ok {
		return nil, false
	}
	return decode(dst, payload)
}

// decode appends what part encodes to dst, and reports whether it does.
func decode(dst, part []byte) ([]byte, bool) {
	if bytes.ContainsAny(part, "\r\n") { // which package base64 would ignore
		return nil, false
	}
	decoded, err := encoding.AppendDecode(dst, part)
	return decoded, err == nil
}
