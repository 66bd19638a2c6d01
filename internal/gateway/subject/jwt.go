package subject

import (
	"bytes"
	"encoding/base64"
)

// encoding is the encoding of the parts of a JWT (RFC 7515 section 2).
var encoding = base64.RawURLEncoding.Strict()

// payloadOf appends the payload of a signed JWT in compact form (RFC 7515 section 3.1) to dst. It
// reports whether the token has that form: three parts, and the first is a JSON object. It verifies
// nothing and does not parse the payload.
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

// decode appends the decoded part to dst. It reports whether part is valid.
func decode(dst, part []byte) ([]byte, bool) {
	if bytes.ContainsAny(part, "\r\n") { // package base64 would ignore them
		return nil, false
	}
	decoded, err := encoding.AppendDecode(dst, part)
	return decoded, err == nil
}
