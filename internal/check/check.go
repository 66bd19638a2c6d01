// Package check holds the assertions that the tests of several packages share. Only tests import
// it.
package check

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// OK ends the test if err is not nil; about says what failed.
func OK(tb testing.TB, err error, about ...string) {
	tb.Helper()
	if err != nil {
		tb.Fatal(strings.Join(append(about, err.Error()), ": "))
	}
}

// ErrorIs ends the test unless err is or wraps want; about says what failed. A nil want is no error.
func ErrorIs(tb testing.TB, err, want error, about ...string) {
	tb.Helper()
	if !errors.Is(err, want) {
		tb.Fatalf("%serror %v, want %v", strings.Join(append(about, ""), ": "), err, want)
	}
}

// As returns the T that err is or wraps, and ends the test if there is none.
func As[T error](tb testing.TB, err error) T {
	tb.Helper()
	found, ok := errors.AsType[T](err)
	if !ok {
		tb.Fatalf("error %v, want a %T", err, found)
	}
	return found
}

// ErrorSays ends the test if err is nil or its message lacks the text.
func ErrorSays(tb testing.TB, err error, text string) {
	tb.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		tb.Fatalf("the error %v does not say %q", err, text)
	}
}

// Equal ends the test unless got is want, unexported fields included; what names the value.
func Equal[T any](tb testing.TB, what string, got, want T) {
	tb.Helper()
	if diff := cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		tb.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// patience is how long [Eventually] waits. It is long enough for a slow machine; no test asserts
// how fast something becomes true.
const patience = 30 * time.Second

// Eventually waits until holds returns true, and ends the test after a timeout; what describes the
// condition. Use it for the effects of another process.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("not so after %v: %s", patience, what)
		}
	}
}
