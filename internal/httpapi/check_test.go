package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// holds fails the test unless the text holds the part.
func holds(tb testing.TB, text, part string) {
	tb.Helper()
	if !strings.Contains(text, part) {
		tb.Fatalf("no %q in %s", part, text)
	}
}

// lacks fails the test if the text holds the part.
func lacks(tb testing.TB, text, part string) {
	tb.Helper()
	if strings.Contains(text, part) {
		tb.Fatalf("%q in %s", part, text)
	}
}

// wantStatus fails the test unless the answer has that status.
func wantStatus(tb testing.TB, res *reply, want int) {
	tb.Helper()
	if res.StatusCode != want {
		tb.Fatalf("status %d, want %d: %s", res.StatusCode, want, res.Body)
	}
}

// wantHeader fails the test unless the header has that value, empty if it must be absent.
func wantHeader(tb testing.TB, h http.Header, name, want string) {
	tb.Helper()
	if got := h.Get(name); got != want {
		tb.Fatalf("%s: %q, want %q", name, got, want)
	}
}

// sameJSON fails the test unless both texts are the same JSON.
func sameJSON(tb testing.TB, got, want string) {
	tb.Helper()
	var g, w any
	check.OK(tb, json.Unmarshal([]byte(got), &g))
	check.OK(tb, json.Unmarshal([]byte(want), &w))
	check.Equal(tb, "JSON", g, w)
}
