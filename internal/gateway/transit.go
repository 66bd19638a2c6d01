package gateway

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// keepTarget makes out request exactly the target of in, byte by byte. By default, URL re-encodes a
// path if a byte in it should be escaped, which turns %2F into a slash. keepTarget applies only to
// targets that are paths.
//
// It escapes bytes that some servers treat as the end of a path: a number sign, and bytes of a path
// that is not valid UTF-8, because two such bytes are spaces in Latin-1. In a path that begins with
// two slashes it also escapes every character that is not allowed in a URI, because URL cannot
// write such a path otherwise.
func keepTarget(out *url.URL, in *http.Request) {
	path, _, _ := strings.Cut(in.RequestURI, "?")
	if _, rest, absolute := strings.Cut(path, "://"); absolute && in.URL.Host != "" {
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	if path == "" || in.URL.Opaque != "" || path == out.EscapedPath() {
		return
	}
	odd, doubled := "#", strings.HasPrefix(path, "//")
	if doubled {
		odd = "\"#<>\\^`{|}"
	}
	ascii := doubled || !utf8.ValidString(path)
	var b strings.Builder
	for i := range len(path) {
		if c := path[i]; strings.IndexByte(odd, c) >= 0 || ascii && c >= utf8.RuneSelf {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	if doubled {
		out.RawPath = b.String()
		return
	}
	out.Opaque = b.String()
}

// trailed is a request body that copies the trailer from in to out at its end, when net/http has
// received it.
type trailed struct {
	io.ReadCloser
	in, out http.Header
}

// keepTrailer forwards the trailer fields that a client announced, except fields about the origin
// of the request.
func keepTrailer(out, in *http.Request) {
	if out.Trailer == nil || out.Body == nil {
		return
	}
	maps.DeleteFunc(out.Trailer, func(name string, _ []string) bool {
		return !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidTrailerHeader(name) || aboutOrigin(name, false)
	})
	out.Body = trailed{out.Body, in.Trailer, out.Trailer}
}

// Read implements [io.Reader].
func (t trailed) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	if errors.Is(err, io.EOF) {
		for name := range t.out {
			t.out[name] = t.in[name]
		}
	}
	return n, err
}
