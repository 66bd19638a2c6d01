package process

import (
	"io/fs"
	"math"
	"os"
	"syscall"
	"testing"
	"testing/fstest"

	"oauth-server/internal/check"
)

func TestTimesOfThisProcess(t *testing.T) {
	t.Parallel()
	times, err := TimesOf(os.Getpid())
	check.OK(t, err)
	if times.Ran <= 0 {
		t.Errorf("a process that runs has run for %v", times.Ran)
	}
	_, err = TimesOf(math.MaxInt32) // above the highest ID that Linux gives
	check.ErrorSays(t, err, "read processor time of process 2147483647")
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
			got, err := timesOf(tc.proc, tc.pid)
			check.Equal(t, "times", got, tc.want)
			if tc.says == "" {
				check.OK(t, err)
			} else {
				check.ErrorSays(t, err, tc.says)
			}
		})
	}
}

func TestOtherSchedstat(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "15\n", "15 16\n", "1 2 3 4\n", "x 2 3\n", "1 x 3\n", "9223372036854775808 2 3\n"} {
		proc := fstest.MapFS{"42/task/42/schedstat": {Data: []byte(text)}}
		if got, err := timesOf(proc, "42"); err == nil || got != (Times{}) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
