package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/check"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPasswordsVerify(t *testing.T) {
	p := NewPasswords(PasswordOptions{})
	hash, err := p.Hash(t.Context(), "correct horse")
	check.OK(t, err)
	if want := "$argon2id$v=19$m=19456,t=2,p=1$"; !strings.HasPrefix(hash, want) {
		t.Fatalf("Hash() = %q, want it to begin with %q", hash, want)
	}

	for name, tc := range map[string]struct {
		password string
		want     bool
	}{
		"right":              {"correct horse", true},
		"wrong":              {"incorrect horse", false},
		"empty":              {"", false},
		"trailing NUL bytes": {"correct horse\x00\x00", false},
		"trailing space":     {"correct horse ", false},
		"other case":         {"Correct horse", false},
		"too long":           {strings.Repeat("x", MaxPasswordLength+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.Verify(t.Context(), hash, tc.password)
			if err != nil || got != tc.want {
				t.Errorf("Verify() = %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestPasswordsHashIsSalted(t *testing.T) {
	p := NewPasswords(PasswordOptions{})
	a, err := p.Hash(t.Context(), "pw")
	check.OK(t, err)
	b, err := p.Hash(t.Context(), "pw")
	check.OK(t, err)
	if a == b {
		t.Errorf("two hashes of one password are both %q", a)
	}
}

// TestHashed: Hashed is called for each hash, and not for an attempt without one.
func TestHashed(t *testing.T) {
	n := 0
	p := NewPasswords(PasswordOptions{Hashed: func(bool) { n++ }})
	_, _ = p.Hash(t.Context(), "pw")
	_, _ = p.Verify(t.Context(), goodHash, "pw")
	_ = p.RejectAttempt(t.Context(), Attempt{Password: "pw"})
	if n != 3 {
		t.Errorf("said %d times, want 3", n)
	}
	_ = p.RejectAttempt(t.Context(), Attempt{Still: func() error { return context.Canceled }})
	_, _ = p.Verify(t.Context(), goodHash, strings.Repeat("x", MaxPasswordLength+1))
	if n != 3 {
		t.Errorf("said %d times, want 3: the last two were not hashed", n)
	}
}

func TestPasswordsHashLength(t *testing.T) {
	p := NewPasswords(PasswordOptions{})
	for name, password := range map[string]string{"empty": "", "too long": strings.Repeat("x", MaxPasswordLength+1)} {
		t.Run(name, func(t *testing.T) {
			_, err := p.Hash(t.Context(), password)
			check.ErrorIs(t, err, ErrPasswordLength)
		})
	}
	_, err := p.Hash(t.Context(), strings.Repeat("x", MaxPasswordLength))
	check.ErrorIs(t, err, nil)
}

// TestPasswordsWait fills every slot and the queue.
func TestPasswordsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPasswords(PasswordOptions{Concurrency: 1, Queue: 1})
		giveBack := takeSlot(t, p)

		ctx, cancel := context.WithCancel(t.Context())
		queued := make(chan error)
		go func() { queued <- p.RejectAttempt(ctx, Attempt{Name: "a"}) }()
		synctest.Wait()

		wantBusy(t, p.RejectAttempt(t.Context(), Attempt{Name: "b", Source: "b"}), 3*time.Second) // the queue holds one
		cancel()
		check.ErrorIs(t, <-queued, context.Canceled)

		go func() { queued <- p.RejectAttempt(t.Context(), Attempt{Name: "a"}) }()
		synctest.Wait()
		giveBack()
		check.ErrorIs(t, <-queued, nil) // the place in the queue was freed
		wantIdle(t, p)
	})
}

// TestPasswordsAskAgain: conditions may have changed since the attempt joined
// the queue.
func TestPasswordsAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPasswords(PasswordOptions{Concurrency: 1})
		giveBack := takeSlot(t, p)
		var answer error
		still := func() error { return answer }
		results := make(chan error)
		go func() { results <- p.RejectAttempt(t.Context(), Attempt{Still: still}) }()
		go func() { _, err := p.VerifyAttempt(t.Context(), goodHash, Attempt{Still: still}); results <- err }()
		synctest.Wait()
		answer = errors.New("not any more")
		giveBack()
		check.ErrorIs(t, <-results, answer)
		check.ErrorIs(t, <-results, answer)
		wantIdle(t, p)
	})
}

func TestPasswordsRefuseEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NewPasswords(PasswordOptions{}).Hash(ctx, "pw")
	check.ErrorIs(t, err, context.Canceled)
}

// TestPasswordsBoundConcurrency holds every slot and checks that nothing is computed until one is
// released.
func TestPasswordsBoundConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPasswords(PasswordOptions{Concurrency: 2})
		giveBack := takeSlot(t, p)
		takeSlot(t, p)
		var done atomic.Int64
		for _, work := range []func() error{
			func() error { _, err := p.Hash(t.Context(), "pw"); return err },
			func() error { _, err := p.Verify(t.Context(), goodHash, "pw"); return err },
			func() error { return p.RejectAttempt(t.Context(), Attempt{Password: "pw"}) },
		} {
			go func() {
				check.OK(t, work())
				done.Add(1)
			}()
		}
		synctest.Wait()
		check.Equal(t, "done while all slots are taken", done.Load(), 0)
		giveBack()
		synctest.Wait()
		check.Equal(t, "done one after the other in the one free slot", done.Load(), 3)
		check.Equal(t, "still wait", len(p.queue.waiting[queued].waiting)+len(p.queue.waiting[held].waiting), 0)
	})
}

const goodHash = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$AAAAAAAAAAAAAAAAAAAAAA"

func TestParseHashRefuses(t *testing.T) {
	_, err := parseHash(goodHash)
	check.ErrorIs(t, err, nil)
	for name, edit := range map[string][2]string{
		"empty":               {goodHash, ""},
		"other algorithm":     {"argon2id", "argon2i"},
		"other version":       {"v=19", "v=16"},
		"no version":          {"$v=19", ""},
		"too much memory":     {"m=8,", "m=4294967295,"},
		"memory overflow":     {"m=8,", "m=42949672960,"},
		"no memory":           {"m=8,", "m=0,"},
		"less than 8p":        {"p=1", "p=2"},
		"too many passes":     {"t=1", "t=1000"},
		"no pass":             {"t=1", "t=0"},
		"too many lanes":      {"m=8,t=1,p=1", "m=2048,t=1,p=255"},
		"leading zero":        {"m=8,", "m=08,"},
		"sign":                {"t=1", "t=+1"},
		"no digits":           {"t=1", "t="},
		"parameters in order": {"m=8,t=1", "t=1,m=8"},
		"parameter missing":   {",p=1", ""},
		"unknown parameter":   {",p=1", ",p=1,x=1"},
		"salt padding":        {"c2FsdHNhbHQ", "c2FsdHNhbHQ="},
		"salt newline":        {"c2FsdHNhbHQ", "c2Fs\ndHNhbHQ"},
		"salt too short":      {"c2FsdHNhbHQ", "c2Fs"},
		"salt stray bits":     {"c2FsdHNhbHQ", "c2FsdHNhbHR"},
		"key too short":       {"AAAAAAAAAAAAAAAAAAAAAA", "AAAA"},
		"key too long":        {"AAAAAAAAAAAAAAAAAAAAAA", strings.Repeat("A", 100)},
		"a further part":      {"$AAAA", "$$AAAA"},
		"longer than bound":   {"c2FsdHNhbHQ", strings.Repeat("A", maxPHC)},
	} {
		t.Run(name, func(t *testing.T) {
			s := strings.Replace(goodHash, edit[0], edit[1], 1)
			if s == goodHash {
				t.Fatal("the edit changes nothing")
			}
			_, err := parseHash(s)
			check.ErrorIs(t, err, ErrMalformedHash)
			_, err = NewPasswords(PasswordOptions{}).Verify(t.Context(), s, "pw")
			check.ErrorIs(t, err, ErrMalformedHash)
		})
	}
}

func FuzzParseHash(f *testing.F) {
	f.Add(goodHash)
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$$")
	f.Add("$$$$$")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parseHash(s)
		if err != nil {
			check.ErrorIs(t, err, ErrMalformedHash)
			return
		}
		if h.params.memory > maxMemory || h.params.passes > maxPasses || h.params.lanes > maxLanes || h.params.passes < 1 {
			t.Fatalf("accepted %+v", h.params)
		}
		if h.String() != s {
			t.Fatalf("%q reads back as %q", s, h)
		}
	})
}

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
// the next attempt gets a slot.
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

func TestGivenSecrets(t *testing.T) {
	good := New()
	for name, tt := range map[string]struct{ text, refusal string }{
		"one of ours":          {good, ""},
		"openssl rand -base64": {"q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=", ""},
		"openssl rand -hex":    {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", ""},
		"a digit of it unused": {strings.Repeat("0123456789abcde7", 4), ""},
		"empty":                {"", "0 characters"},
		"short":                {good[:41], "41 characters"},
		"a password":           {"correct horse battery staple", "28 characters"},
		"a sentence":           {"correct horse battery staple, and a few more words", "visible ASCII"},
		"repeated":             {strings.Repeat("secret", 20), "different"},
		"a line break":         {good + "\n", "visible ASCII"},
		"not ASCII":            {good + "é", "visible ASCII"},
	} {
		t.Run(name, func(t *testing.T) {
			digest, err := Given(tt.text)
			if tt.refusal != "" {
				check.ErrorSays(t, err, tt.refusal)
				return
			}
			check.OK(t, err)
			check.Equal(t, "it matches", digest.Matches(tt.text), true)
		})
	}
}
