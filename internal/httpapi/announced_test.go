package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
