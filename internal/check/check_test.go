package check_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"oauth-server/internal/check"
)

// recorder stands in for the test that a check ends.
type recorder struct {
	testing.TB
	said string
}

func (*recorder) Helper() {}

func (r *recorder) Fatal(args ...any) {
	r.said = fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

func TestChecks(t *testing.T) {
	type record struct{ hidden int }
	broken, turns := errors.New("broken"), 0
	for name, tc := range map[string]struct {
		do   func(*recorder)
		says string // empty: the check holds
	}{
		"no error":       {func(r *recorder) { check.OK(r, nil, "open") }, ""},
		"an error":       {func(r *recorder) { check.OK(r, broken) }, "broken"},
		"what failed":    {func(r *recorder) { check.OK(r, broken, "open", "read") }, "open: read: broken"},
		"that error":     {func(r *recorder) { check.ErrorIs(r, fmt.Errorf("open: %w", broken), broken) }, ""},
		"no such error":  {func(r *recorder) { check.ErrorIs(r, broken, io.EOF, "open", "read") }, "open: read: error broken, want EOF"},
		"that type":      {func(r *recorder) { _ = check.As[*fs.PathError](r, fmt.Errorf("open: %w", &fs.PathError{})) }, ""},
		"no such type":   {func(r *recorder) { _ = check.As[*fs.PathError](r, broken) }, "error broken, want a *fs.PathError"},
		"the text":       {func(r *recorder) { check.ErrorSays(r, broken, "oke") }, ""},
		"another text":   {func(r *recorder) { check.ErrorSays(r, broken, "lost") }, `the error broken does not say "lost"`},
		"no error there": {func(r *recorder) { check.ErrorSays(r, nil, "nil") }, `the error <nil> does not say "nil"`},
		"equal":          {func(r *recorder) { check.Equal(r, "record", record{1}, record{1}) }, ""},
		"different":      {func(r *recorder) { check.Equal(r, "record", record{1}, record{2}) }, "record (-want +got):\n"},
		"soon":           {func(r *recorder) { check.Eventually(r, "soon", func() bool { turns++; return turns > 3 }) }, ""},
		"never":          {func(r *recorder) { check.Eventually(r, "never", func() bool { return false }) }, "not so after 30s: never"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{TB: t}
				var ended sync.WaitGroup
				ended.Go(func() { tc.do(r) })
				ended.Wait()
				if (r.said == "") != (tc.says == "") || !strings.HasPrefix(r.said, tc.says) {
					t.Errorf("it says %q, want %q", r.said, tc.says)
				}
			})
		})
	}
}
