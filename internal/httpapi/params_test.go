package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
)

// growing records the largest read before any data has arrived.
type growing struct {
	text    io.Reader
	largest int
}

func (g *growing) Read(p []byte) (int, error) {
	g.largest = max(g.largest, len(p))
	return g.text.Read(p[:min(len(p), 1)])
}

// TestAnnouncedBodies checks that a body uses memory as it arrives, whatever length was announced,
// and that it must have that length.
//
// Attack (connections): Announced bodies that never arrive. Memory grows with received bytes,
// not with the announced length.
func TestAnnouncedBodies(t *testing.T) {
	for name, tc := range map[string]struct {
		length int64
		text   string
		whole  bool
	}{
		"announced and not sent": {maxBody, "grant_type=", false},
		"a byte short":           {4, "a=b", false},
		"whole":                  {3, "a=b", true},
		"empty":                  {0, "", true},
		"of unknown length":      {-1, "a=b", true},
		"too long":               {maxBody + 1, "", false},
		"longest":                {maxBody, strings.Repeat("a", maxBody), true},
	} {
		t.Run(name, func(t *testing.T) {
			body := &growing{text: strings.NewReader(tc.text)}
			r := httptest.NewRequest(http.MethodPost, "/token", body)
			r.ContentLength = tc.length
			got, err := readAll(r, httptest.NewRecorder())
			check.Equal(t, "read", err == nil, tc.whole)
			if tc.whole {
				check.Equal(t, "text", got, tc.text)
			}
			if most := 4*len(tc.text) + 4<<10; body.largest > most {
				t.Errorf("%d bytes were waiting for what came to %d", body.largest, len(tc.text))
			}
		})
	}
}

// FuzzParams checks that accepted parameters are bounded, equal those of net/url, and survive
// encoding and parsing.
func FuzzParams(f *testing.F) {
	for _, seed := range []string{
		"a=1&b=2", "a=1&a=2&a=", "=x&y", "scope=a+b%20c", "%61=%e2%82%ac", "x=%00", "x=%ff", "x=%zz", "a=b;c=d", "client_id=" + strings.Repeat("x", 257),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := parseParams(raw)
		if err != nil {
			return
		}
		if n := len(p.pairs) + len(p.repeated); n > maxParams {
			t.Fatalf("%d parameters", n)
		}
		first := firstValues(raw)
		for i, kv := range p.pairs {
			if text := kv.name + "=" + kv.value; !utf8.ValidString(text) || strings.Contains(text, "\x00") {
				t.Errorf("%q is no text", text)
			}
			if kv.value == "" || len(kv.value) > maxLength(kv.name) {
				t.Errorf("%s has a value of %d bytes", kv.name, len(kv.value))
			}
			if slices.ContainsFunc(p.pairs[:i], func(other param) bool { return other.name == kv.name }) {
				t.Errorf("%q stands twice", kv.name)
			}
			if want, known := first[kv.name]; known && want != kv.value {
				t.Errorf("%q is %q, and %q to net/url", kv.name, kv.value, want)
			}
		}
		again, err := parseParams(p.encode())
		if diff := cmp.Diff(p.pairs, again.pairs, cmp.AllowUnexported(param{})); err != nil || diff != "" || len(again.repeated) > 0 {
			t.Errorf("written as %q, it reads back with %v, repeated %q and\n%s", p.encode(), err, again.repeated, diff)
		}
	})
}

// firstValues returns the first values that are not empty, as net/url reads them. net/url refuses a
// semicolon, which does not separate parameters here.
func firstValues(raw string) map[string]string {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil
	}
	first := map[string]string{}
	for name, all := range values {
		if i := slices.IndexFunc(all, func(v string) bool { return v != "" }); i >= 0 {
			first[name] = all[i]
		}
	}
	return first
}
