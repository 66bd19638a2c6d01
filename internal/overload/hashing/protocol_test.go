package hashing

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/secret"
)

// FuzzTask: a child accepts only tasks within the bounds, and encoding an accepted task returns the
// same bytes.
func FuzzTask(f *testing.F) {
	for _, task := range []secret.Task{own("correct horse"), own(""), slow} {
		f.Add(appendTask(nil, task)[frameHeader:])
	}
	f.Add([]byte{})
	f.Add(make([]byte, taskHeader))
	f.Fuzz(func(t *testing.T, body []byte) {
		task, err := parseTask(body)
		if err != nil {
			return
		}
		check.OK(t, task.Check())
		if task.Memory > 256*1024 || task.Passes > 16 || task.Length > 64 || len(task.Password) > secret.MaxPasswordLength {
			t.Errorf("%d KiB, %d passes, %d bytes of key, %d of password", task.Memory, task.Passes, task.Length, len(task.Password))
		}
		if again := appendTask(nil, task); !bytes.Equal(again[frameHeader:], body) || len(body) > maxFrame {
			t.Errorf("%x is written as %x", body, again)
		}
	})
}

// FuzzFrame: frames read as they were written.
func FuzzFrame(f *testing.F) {
	f.Add(appendFrame(appendFrame(nil, []byte(ready)), []byte{1}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, text []byte) {
		r, buf, again := bytes.NewReader(text), make([]byte, maxFrame), []byte(nil)
		for {
			body, err := readFrame(r, buf)
			if err != nil {
				check.Equal(t, "the end", errors.Is(err, io.EOF), len(again) == len(text))
				return
			}
			again = appendFrame(again, body)
			check.Equal(t, "frames", again, text[:len(again)])
		}
	})
}

// TestPauses: after failures in a row no child is started for a while, and one log line a minute
// has their number.
func TestPauses(t *testing.T) {
	var f failures
	now := time.Unix(1_800_000_000, 0)
	check.OK(t, f.wait(now))
	check.Equal(t, "to be logged", f.add(now), 1)
	for _, pause := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
		check.Equal(t, "before "+pause.String(), f.wait(now.Add(pause-1)), errPause)
		now = now.Add(pause)
		check.OK(t, f.wait(now))
		check.Equal(t, "to be logged", f.add(now), 0)
	}
	for range 20 {
		f.add(now)
	}
	check.Equal(t, "before a minute", f.wait(now.Add(time.Minute-1)), errPause)
	now = now.Add(time.Minute)
	check.OK(t, f.wait(now))
	check.Equal(t, "to be logged", f.add(now), 24)
	f.over()
	check.OK(t, f.wait(now))
	f.add(now)
	check.OK(t, f.wait(now.Add(100*time.Millisecond)))
}
