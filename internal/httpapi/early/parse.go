package early

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"
)

// Request holds the fields of a token request.
type Request struct {
	ClientID, Secret   string
	Grant              string
	RefreshToken, Code string
}

// parse parses a token request that is complete and plain: HTTP/1.1, the given path, a form as the
// body, no repeated fields, no escapes in the fields it reads, and no folded lines. It returns
// false for all other requests, well-formed or not. It also returns false for every request that
// net/http refuses, because net/http then closes the connection: a proxy may read such a request
// differently.
func parse(b []byte, path string) (r Request, ok bool) {
	line, rest, found := bytes.Cut(b, crlf)
	if !found || !isRequestLine(line, path) {
		return r, false
	}
	head, body, found := bytes.Cut(rest, headEnd)
	if !found {
		return r, false
	}
	h, ok := readHeader(head)
	if !ok || h.length != len(body) || !h.form || !h.host {
		return r, false
	}
	f, ok := readForm(body)
	if !ok {
		return r, false
	}
	r = Request{Grant: f.grant, RefreshToken: f.refreshToken, Code: f.code, ClientID: f.clientID, Secret: f.secret}
	if h.basic == nil {
		return r, r.ClientID != "" && r.Secret != ""
	}
	id, secret, ok := readBasic(h.basic)
	if !ok || f.secret != "" || f.clientID != "" && f.clientID != id {
		return r, false
	}
	r.ClientID, r.Secret = id, secret
	return r, true
}

var (
	crlf    = []byte("\r\n")
	headEnd = []byte("\r\n\r\n")
)

func isRequestLine(line []byte, path string) bool {
	const method, proto = "POST ", " HTTP/1.1"
	return len(line) == len(method)+len(path)+len(proto) && string(line[:len(method)]) == method &&
		string(line[len(method):len(method)+len(path)]) == path && string(line[len(method)+len(path):]) == proto
}

// header holds the header fields that parse uses.
type header struct {
	length int // of the body; -1: unknown
	form   bool
	host   bool
	basic  []byte // in base64; nil: none
}

func readHeader(head []byte) (h header, ok bool) {
	h.length = -1
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, crlf)
		name, value, found := bytes.Cut(line, []byte(":"))
		if !found || !isToken(name) || !isText(value) || !h.take(name, bytes.Trim(value, " \t")) {
			return h, false
		}
	}
	return h, true
}

// isToken reports whether name can be a field name (RFC 9110 section 5.1).
func isToken(name []byte) bool { return len(name) > 0 && only(name, "!#$%&'*+-.^_`|~") }

// isHost reports whether value is a plain name or address, with or without a port.
func isHost(value []byte) bool { return len(value) > 0 && only(value, "-.:[]_") }

// only reports whether b contains only letters, digits and the other characters.
func only(b []byte, others string) bool {
	for _, c := range b {
		letter, digit := 'a' <= c|' ' && c|' ' <= 'z', '0' <= c && c <= '9'
		if !letter && !digit && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}

// isText reports whether value contains no control characters except tabs.
func isText(value []byte) bool {
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// take reads a field. It reports false if net/http or a later handler must see the request.
func (h *header) take(name, value []byte) bool {
	switch {
	case is(name, "content-length"):
		n, err := strconv.ParseUint(string(value), 10, 31)
		if err != nil || h.length >= 0 {
			return false
		}
		h.length = int(n)
	case is(name, "host"):
		if h.host || !isHost(value) {
			return false
		}
		h.host = true
	case is(name, "content-type"):
		if h.form || !is(value, "application/x-www-form-urlencoded") {
			return false
		}
		h.form = true
	case is(name, "authorization"):
		const scheme = "basic "
		if h.basic != nil || len(value) <= len(scheme) || !is(value[:len(scheme)], scheme) {
			return false
		}
		h.basic = value[len(scheme):]
	case is(name, "connection"):
		return is(value, "keep-alive")
	case is(name, "origin"), is(name, "transfer-encoding"), is(name, "expect"), is(name, "upgrade"), is(name, "trailer"), is(name, "content-encoding"):
		return false
	}
	return true
}

// is compares b with lower and ignores the case of b.
func is(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// maxBasic bounds the decoded credentials in bytes.
const maxBasic = 512

func readBasic(encoded []byte) (id, secret string, ok bool) {
	var space [maxBasic]byte
	if base64.StdEncoding.DecodedLen(len(encoded)) > len(space) {
		return "", "", false
	}
	n, err := base64.StdEncoding.Decode(space[:], encoded)
	if err != nil || bytes.ContainsAny(space[:n], "%+") {
		return "", "", false
	}
	user, password, found := bytes.Cut(space[:n], []byte(":"))
	return string(user), string(password), found && len(user) > 0 && len(password) > 0
}

type form struct{ clientID, secret, grant, refreshToken, code string }

func readForm(body []byte) (f form, ok bool) {
	for len(body) > 0 {
		var pair []byte
		pair, body, _ = bytes.Cut(body, []byte("&"))
		name, value, _ := bytes.Cut(pair, []byte("="))
		if len(name) == 0 || bytes.ContainsAny(name, "%+;") {
			return f, false
		}
		to := f.field(name)
		if to == nil {
			continue
		}
		if *to != "" || len(value) == 0 || bytes.ContainsAny(value, "%+;") {
			return f, false
		}
		*to = string(value)
	}
	return f, f.grant != ""
}

func (f *form) field(name []byte) *string {
	switch string(name) {
	case "client_id":
		return &f.clientID
	case "client_secret":
		return &f.secret
	case "grant_type":
		return &f.grant
	case "refresh_token":
		return &f.refreshToken
	case "code":
		return &f.code
	}
	return nil
}
