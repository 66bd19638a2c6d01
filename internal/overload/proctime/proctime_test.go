package proctime

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"runtime"
	"syscall"
	"testing"
	"testing/fstest"

	"oauth-server/internal/check"
)

func TestOfThisProcess(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the times of threads are in /proc on Linux only")
	}
	times, err := Of(os.Getpid())
	check.OK(t, err)
	if times.Ran <= 0 {
		t.Errorf("a process that runs has run for %v", times.Ran)
	}
	_, err = Of(math.MaxInt32) // above the highest ID that Linux gives
	check.ErrorSays(t, err, "read processor time of process 2147483647")
}

// TestSelf grows with work.
func TestSelf(t *testing.T) {
	t.Parallel()
	before, err := Self()
	if errors.Is(err, errors.ErrUnsupported) && runtime.GOOS != "linux" {
		t.Skip("the processor time of this process is read on Linux only")
	}
	check.OK(t, err)
	for now := before; now == before; now, err = Self() {
		check.OK(t, err)
	}
}

// failing is a /proc in which reading of one file fails.
type failing struct {
	fs.FS
	file string
	err  error
}

func (f failing) Open(name string) (fs.File, error) {
	if name == f.file {
		return nil, &fs.PathError{Op: "open", Path: name, Err: f.err}
	}
	return f.FS.Open(name)
}

// A thread that ends meanwhile is left out, wherever that is noticed; any other failure is one.
func TestThreads(t *testing.T) {
	t.Parallel()
	const first, second = "42/task/42/schedstat", "42/task/43/schedstat"
	proc := fstest.MapFS{
		first:                  {Data: []byte("1500000000 30 17\n")},
		second:                 {Data: []byte("500000000 12 4\n")},
		"42/task/44/stat":      {},
		"43/task/43/schedstat": {Data: []byte("7 7 7\n")},
		"45/task/45/stat":      {},
	}
	for name, tc := range map[string]struct {
		proc fs.FS
		pid  string
		want Times
		says string // empty: no error
	}{
		"all":              {proc, "42", Times{2_000_000_000, 42}, ""},
		"another":          {proc, "43", Times{7, 7}, ""},
		"ended":            {failing{proc, first, fs.ErrNotExist}, "42", Times{500_000_000, 12}, ""},
		"ended in between": {failing{proc, second, syscall.ESRCH}, "42", Times{1_500_000_000, 30}, ""},
		"forbidden":        {failing{proc, second, fs.ErrPermission}, "42", Times{}, second},
		"no such process":  {proc, "44", Times{}, "44/task"},
		"no schedstat":     {proc, "45", Times{}, "no thread has a schedstat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := of(tc.proc, tc.pid)
			check.Equal(t, "times", got, tc.want)
			if tc.says == "" {
				check.OK(t, err)
			} else {
				check.ErrorSays(t, err, tc.says)
			}
		})
	}
}

func TestOtherText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "15\n", "15 16\n", "1 2 3 4\n", "x 2 3\n", "1 x 3\n", "9223372036854775808 2 3\n"} {
		proc := fstest.MapFS{"42/task/42/schedstat": {Data: []byte(text)}}
		if got, err := of(proc, "42"); err == nil || got != (Times{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
