package storetest

import (
	"testing"
	"time"
)

func testRevocations(t *testing.T, target Target) {
	t.Helper()
	t.Run("any of the names", func(t *testing.T) {
		b := target.fresh(t)
		succeed(t, "revoke", b.Revoke(t.Context(), "revoked", Epoch.Add(time.Hour)))
		for _, test := range []struct {
			name  string
			names []string
			want  bool
		}{
			{"none asked", nil, false},
			{"another", []string{"other"}, false},
			{"a prefix", []string{"revoke"}, false},
			{"another case", []string{"Revoked"}, false},
			{"the one", []string{"revoked"}, true},
			{"the last of several", []string{"other", "", "revoked"}, true},
		} {
			if got := revoked(t, b, test.names...); got != test.want {
				t.Errorf("%s: got %v, want %v", test.name, got, test.want)
			}
		}
	})
	t.Run("the later time stays", func(t *testing.T) { laterStays(t, target.fresh(t)) })
	t.Run("100 at once keep the latest", func(t *testing.T) {
		b := target.fresh(t)
		errs := make([]error, 100)
		together(len(errs), func(i int) {
			errs[i] = b.Revoke(t.Context(), "family", Epoch.Add(time.Duration(i)*time.Second))
		})
		for _, err := range errs {
			succeed(t, "revoke", err)
		}
		sweep(t, b, Epoch.Add(99*time.Second), 0)
		sweep(t, b, Epoch.Add(100*time.Second), 1)
	})
}

func revoked(t *testing.T, b Backend, names ...string) bool {
	t.Helper()
	yes, err := b.Revoked(t.Context(), names...)
	succeed(t, "revoked", err)
	return yes
}

func laterStays(t *testing.T, b Backend) {
	t.Helper()
	for _, until := range []time.Duration{time.Minute, time.Hour, time.Second} {
		succeed(t, "revoke", b.Revoke(t.Context(), "family", Epoch.Add(until)))
	}
	sweep(t, b, Epoch.Add(time.Hour), 0)
	if !revoked(t, b, "family") {
		t.Error("an earlier time replaced a later one")
	}
	sweep(t, b, Epoch.Add(time.Hour+time.Millisecond), 1)
	if revoked(t, b, "family") {
		t.Error("a revocation outlived its time")
	}
}
