package tokenrequest

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// MayAsk reports whether a server may find the parameter grant_type in a request: in its query, or
// in a body of any type. If in doubt it reports true, for example for a body that is compressed, or
// in a charset that does not extend ASCII.
func MayAsk(header http.Header, query string, body []byte) bool {
	if mentions([]byte(query)) {
		return true
	}
	return len(body) > 0 && (isUnreadable(header) || mentions(body))
}

// isUnreadable reports whether [mentions] cannot read the body as a server would.
func isUnreadable(header http.Header) bool {
	for _, encoding := range header["Content-Encoding"] {
		if encoding != "" && !strings.EqualFold(encoding, "identity") {
			return true
		}
	}
	for _, field := range header["Content-Type"] {
		for {
			_, after, found := strings.Cut(strings.ToLower(field), "charset")
			if !found {
				break
			}
			field = after
			charset := strings.Trim(after, "=\"*' \t")
			if !strings.HasPrefix(charset, "utf-8") && !strings.HasPrefix(charset, "utf8") && !strings.HasPrefix(charset, "us-ascii") &&
				!strings.HasPrefix(charset, "iso-8859-") && !strings.HasPrefix(charset, "windows-125") {
				return true
			}
		}
	}
	return false
}

// mentions reports whether text contains grant_type in any form that some server accepts as a
// parameter name: in any letter case, percent-encoded, escaped as in JSON or a quoted string, with
// characters that PHP turns into an underscore, or in UTF-16. It also reports true if a part of a
// multipart body has its name split into pieces or in an encoded word, because that may be any
// name.
func mentions(text []byte) bool {
	for i, c := range text {
		switch c {
		case 'g', 'G', '%', '\\':
			if isMention(text[i:]) {
				return true
			}
		}
	}
	return hiddenName.Match(text)
}

// hiddenName matches the name of a part in pieces (RFC 2231 section 3), which Go and Python join,
// and an encoded word (RFC 2047), which Java decodes.
var hiddenName = regexp.MustCompile(`(?i)\bname\*[0-9]|=\?[^?\s]+\?[bq]\?`)

func isMention(text []byte) bool {
	for _, want := range []byte("grant_type") {
		var c byte
		if c, text = character(text); c != want {
			return false
		}
	}
	if len(text) == 0 { // it has no value, or more text follows
		return false
	}
	c := text[0] | 0x20
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && text[0] != '_' && text[0] != '-' // for example grant_types
}

// character returns the first character of a text, decoded and in lower case, and the rest. It
// returns 0 at the end.
func character(text []byte) (c byte, rest []byte) {
	for len(text) > 0 && text[0] == 0 {
		text = text[1:]
	}
	if len(text) == 0 {
		return 0, nil
	}
	c, rest = text[0], text[1:]
	digits := 0 // the number of hex digits of an escaped character
	switch {
	case (c == '\\' || c == '%') && len(rest) > 0 && rest[0] == 'u': // as in JSON, and as ASP.NET decodes forms
		digits, rest = 4, rest[1:]
	case c == '%':
		digits = 2
	case c == '\\' && len(rest) > 0:
		c, rest = rest[0], rest[1:]
	}
	if digits > 0 && len(rest) >= digits {
		c = hexDigit(rest[digits-2])<<4 | hexDigit(rest[digits-1])
		rest = rest[digits:]
	}
	switch c = folded(rune(c)); c {
	case ' ', '+', '.', '[':
		c = '_'
	}
	return c, rest
}

// longestMention is how much of the previous text [Watch] keeps. It is longer than any spelling of
// grant_type, except spellings padded with NULs.
const longestMention = 128

// Watch returns a reader of the rest of a body. begin is the part before it and must not mention
// grant_type. If the body does mention grant_type, the reader fails with err instead of returning
// it.
func Watch(begin []byte, rest io.Reader, err error) io.Reader {
	w := &watch{rest: rest, err: err}
	w.keep(begin)
	return w
}

type watch struct {
	rest io.Reader
	err  error
	last []byte // the end of the text read so far
}

func (w *watch) keep(read []byte) { w.last = bytes.Clone(read[max(0, len(read)-longestMention):]) }

// Read implements [io.Reader].
func (w *watch) Read(p []byte) (int, error) {
	n, err := w.rest.Read(p)
	read := slices.Concat(w.last, p[:n])
	if mentions(read) {
		return 0, w.err
	}
	w.keep(read)
	return n, err //nolint:wrapcheck // io.EOF
}

// hexDigit returns the value of a hexadecimal digit, or 0xff for anything else.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 0xff
}
