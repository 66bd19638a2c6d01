package httpapi_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ok fails the test on an error.
func ok(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// equal fails the test unless got is want, unexported fields included.
func equal[T any](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		tb.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

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
	ok(tb, json.Unmarshal([]byte(got), &g))
	ok(tb, json.Unmarshal([]byte(want), &w))
	equal(tb, "JSON", g, w)
}
