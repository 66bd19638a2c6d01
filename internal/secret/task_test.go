package secret

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestSeparate: a task that Separate does not compute, or with a result that does not fit, is
// computed in this process, so the answer is never wrong.
func TestSeparate(t *testing.T) {
	foreign := foreignHashes(t)["PHC"]
	for name, tc := range map[string]struct {
		separate func(Task) ([]byte, error)
		here     bool
	}{
		"elsewhere":     {func(t Task) ([]byte, error) { return t.Do(), nil }, false},
		"it fails":      {func(t Task) ([]byte, error) { return t.Do(), errors.New("no process") }, true},
		"nothing":       {func(Task) ([]byte, error) { return nil, nil }, true},
		"too short":     {func(t Task) ([]byte, error) { return t.Do()[1:], nil }, true},
		"too long":      {func(t Task) ([]byte, error) { return append(t.Do(), 1), nil }, true},
		"not a boolean": {func(Task) ([]byte, error) { return []byte{2}, nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			places := map[bool]int{}
			p := NewPasswords(PasswordOptions{Separate: tc.separate, Hashed: func(separately bool) { places[separately]++ }})
			hash, err := p.Hash(t.Context(), foreignPassword)
			check.ErrorIs(t, err, nil)
			for _, hash := range []string{hash, foreign} {
				for _, password := range []string{foreignPassword, foreignPassword + " "} {
					ok, err := p.Verify(t.Context(), hash, password)
					if want := password == foreignPassword; ok != want || err != nil {
						t.Errorf("%s: %v, %v", password, ok, err)
					}
				}
			}
			want := map[bool]int{!tc.here: 5}
			if !maps.Equal(places, want) {
				t.Errorf("hashed separately or not: %v", places)
			}
		})
	}
}

func TestTaskCheck(t *testing.T) {
	good := Task{Password: "pw", Salt: make([]byte, 16), Memory: 19 * 1024, Passes: 2, Lanes: 1, Length: 32}
	foreign := Task{Password: "pw", Foreign: foreignHashes(t)["Django"]}
	for _, task := range []Task{good, foreign} {
		check.ErrorIs(t, task.Check(), nil)
	}
	if !good.Own() || foreign.Own() {
		t.Error("which one is of our own hashes?")
	}
	for name, task := range map[string]func(*Task){
		"password": func(t *Task) { t.Password = strings.Repeat("x", MaxPasswordLength+1) },
		"salt":     func(t *Task) { t.Salt = bytes.Repeat([]byte{1}, maxSalt+1) },
		"no salt":  func(t *Task) { t.Salt = nil },
		"memory":   func(t *Task) { t.Memory = maxMemory + 1 },
		"passes":   func(t *Task) { t.Passes = 0 },
		"lanes":    func(t *Task) { t.Lanes = maxLanes + 1 },
		"length":   func(t *Task) { t.Length = -1 },
		"kind":     func(t *Task) { t.Foreign = "s3cret" },
		"both":     func(t *Task) { t.Foreign = foreign.Foreign },
		"hash":     func(t *Task) { *t = Task{Foreign: "s3cret"} },
	} {
		t.Run(name, func(t *testing.T) {
			wrong := good
			task(&wrong)
			if err := wrong.Check(); err == nil || strings.Contains(err.Error(), "s3cret") {
				t.Error(err)
			}
		})
	}
}

// TestStarved: a task that Separate returns as starved is not computed in this process either, and
// the next attempt gets its turn.
func TestStarved(t *testing.T) {
	t.Parallel()
	starved := true
	p := NewPasswords(PasswordOptions{
		Concurrency: 1, MaxWait: 2 * time.Second,
		Separate: func(task Task) ([]byte, error) {
			if starved {
				return nil, fmt.Errorf("child 7: %w", ErrStarved)
			}
			return task.Do(), nil
		},
		Hashed: func(bool) {
			if starved {
				t.Error("it was counted as hashed")
			}
		},
	})
	_, err := p.Hash(t.Context(), "correct horse")
	var busy *BusyError
	if !errors.As(err, &busy) || busy.RetryAfter != 2*time.Second || !busy.Starved {
		t.Errorf("error %v, want a BusyError that says starved and 2s", err)
	}
	starved = false
	hash, err := p.Hash(t.Context(), "correct horse")
	check.OK(t, err)
	if ok, err := p.Verify(t.Context(), hash, "correct horse"); !ok || err != nil {
		t.Errorf("the right password: %v, %v", ok, err)
	}
}
