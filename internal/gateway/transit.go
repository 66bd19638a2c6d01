package gateway

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// keepTarget has out ask for the target of in, byte by byte. A URL writes its path anew if that has a byte which it would have
// escaped, and what was %2F is a slash then. No target but a path is kept so.
//
// What some servers read as the end of a path is escaped: a number sign, and bytes that are no UTF-8, of which two are spaces in
// Latin-1. So is everything that a URI cannot have in a path that begins with two slashes, which URL writes in no other way.
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

// interim writes an interim answer of the upstream (RFC 9110 section 15.2), whose fields are not those of the answer.
func interim(w http.ResponseWriter, status int, fields http.Header) {
	header := w.Header()
	final := maps.Clone(header)
	clear(header)
	removeHopByHop(fields)
	maps.Copy(header, fields)
	w.WriteHeader(status)
	clear(header)
	maps.Copy(header, final)
}

// announce says in a header which fields follow the body, if it is not written yet.
func announce(header, trailer http.Header) {
	if len(trailer) > 0 {
		header["Trailer"] = []string{strings.Join(slices.Sorted(maps.Keys(trailer)), ", ")}
	}
}

// trailed is the body of a request with fields behind it, which net/http knows at its end.
type trailed struct {
	io.ReadCloser
	in, out http.Header
}

// keepTrailer has the fields that a client announced sent behind the body, but for those that say where a request comes from.
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
