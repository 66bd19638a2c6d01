package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// noError ends the test if err is not nil; about says what failed.
func noError(tb testing.TB, err error, about ...string) {
	tb.Helper()
	if err != nil {
		tb.Fatal(strings.Join(append(about, err.Error()), ": "))
	}
}

// errorSays ends the test if err is nil or its message lacks the text.
func errorSays(tb testing.TB, err error, text string) {
	tb.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		tb.Fatalf("the error %v does not say %q", err, text)
	}
}

// equal ends the test if got differs from want; what names the value.
func equal[T any](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}
