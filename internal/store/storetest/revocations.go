package storetest

import (
	"testing"
	"time"

	"oauth-server/internal/grants"
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
	t.Run("recorded once", func(t *testing.T) { recordOnce(t, target.fresh(t)) })
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

// recordOnce: of 100 at once one records the name, and it is as good as a revoked one: until it expires.
func recordOnce(t *testing.T, b Backend) {
	t.Helper()
	errs := make([]error, 100)
	together(len(errs), func(i int) { errs[i] = b.RecordOnce(t.Context(), "once", Epoch.Add(time.Hour)) })
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		failWith(t, "record it again", grants.ErrExists, err)
	}
	equal(t, "winners", 1, won)
	succeed(t, "record another", b.RecordOnce(t.Context(), "other", Epoch.Add(2*time.Hour)))
	succeed(t, "revoke a third", b.Revoke(t.Context(), "third", Epoch.Add(2*time.Hour)))
	failWith(t, "record what is revoked", grants.ErrExists, b.RecordOnce(t.Context(), "third", Epoch.Add(time.Hour)))
	sweep(t, b, Epoch.Add(time.Hour+time.Second), 1)
	failWith(t, "record what has not expired", grants.ErrExists, b.RecordOnce(t.Context(), "other", Epoch.Add(3*time.Hour)))
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
