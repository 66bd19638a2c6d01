package early

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// parse returns the request in b and its body, if b is one complete and plain request with this first
// line, and nothing else. net/http would read the same request from b. parse returns false for every
// request that the server of net/http refuses, because it then closes the connection: a proxy may
// read such a request differently.
func parse(b []byte, line string) (r *http.Request, body string, ok bool) {
	if len(b) < len(line) || string(b[:len(line)]) != line {
		return nil, "", false
	}
	in := bufio.NewReaderSize(bytes.NewReader(b), len(b))
	r, err := http.ReadRequest(in)
	if err != nil || !isPlain(r) {
		return nil, "", false
	}
	whole, err := io.ReadAll(r.Body)
	if _, end := in.Peek(1); err != nil || !errors.Is(end, io.EOF) {
		return nil, "", false
	}
	return r, string(whole), true
}

// isPlain reports whether net/http handles the request without an effect on the connection or the
// header of the answer.
func isPlain(r *http.Request) bool {
	for _, name := range [...]string{"Origin", "Expect", "Upgrade", "Trailer", "Content-Encoding"} {
		if r.Header[name] != nil {
			return false
		}
	}
	for name, values := range r.Header {
		if !only(name, "!#$%&'*+-.^_`|~") || slices.ContainsFunc(values, func(v string) bool { return strings.ContainsFunc(v, isControl) }) {
			return false
		}
	}
	kept := r.Header.Get("Connection")
	return r.ContentLength >= 0 && (kept == "" || strings.EqualFold(kept, "keep-alive")) && only(r.Host, "-.:[]_")
}

func isControl(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// only reports whether a text has letters, digits and the other characters only, and at least one.
func only(text, others string) bool {
	const usual = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return text != "" && strings.Trim(text, usual+others) == ""
}
