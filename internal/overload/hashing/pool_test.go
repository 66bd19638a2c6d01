package hashing

import (
	"bytes"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"oauth-server/internal/check"
	"oauth-server/internal/secret"
)

// open opens a pool with a long Patience, unless options change it.
func open(t *testing.T, options ...func(*Options)) *Pool {
	t.Helper()
	opts := Options{Patience: time.Minute}
	for _, o := range options {
		o(&opts)
	}
	p, err := Open(opts)
	check.OK(t, err)
	t.Cleanup(p.Close)
	return p
}

// failing makes the children fail in one of the ways of badChild.
func failing(mode string) func(*Options) {
	return func(o *Options) { o.environ = append(o.environ, childMode+"="+mode) }
}

func TestResultsAreThoseOfTheServer(t *testing.T) {
	b, err := bcrypt.GenerateFromPassword([]byte("correct horse"), bcrypt.MinCost)
	check.OK(t, err)
	salt := []byte("0123456789abcdef")
	key, err := pbkdf2.Key(sha256.New, "correct horse", salt, 1000, 32)
	check.OK(t, err)
	django := fmt.Sprintf("pbkdf2_sha256$1000$%s$%s", salt, base64.StdEncoding.EncodeToString(key))
	p := open(t)
	for name, task := range map[string]secret.Task{
		"our own":       own("correct horse"),
		"no password":   own(""),
		"the longest":   own(strings.Repeat("\x00\xff", secret.MaxPasswordLength/2)),
		"more memory":   {Password: "a", Salt: salt, Memory: 40 * 1024, Passes: 1, Lanes: 4, Length: 64},
		"least":         {Password: "a", Salt: salt[:8], Memory: 8, Passes: 1, Lanes: 1, Length: 16},
		"bcrypt":        {Password: "correct horse", Foreign: string(b)},
		"bcrypt, wrong": {Password: "correct", Foreign: string(b)},
		"PBKDF2":        {Password: "correct horse", Foreign: django},
		"PBKDF2, wrong": {Password: "correct horse ", Foreign: django},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.Compute(task)
			check.OK(t, err)
			check.Equal(t, "result", got, task.Do())
		})
	}
	check.Equal(t, "children", len(p.pids()), 1)
}

// TestHashesOfOnePlaceAreVerifiedInTheOther also uses a known result of another implementation.
func TestHashesOfOnePlaceAreVerifiedInTheOther(t *testing.T) {
	places := map[bool]int{}
	there := secret.NewPasswords(secret.PasswordOptions{
		Separate: open(t).Compute, Hashed: func(separately bool) { places[separately]++ },
	})
	here := secret.NewPasswords(secret.PasswordOptions{})
	const password = "correct horse"
	for _, from := range []*secret.Passwords{there, here} {
		hash, err := from.Hash(t.Context(), password)
		check.OK(t, err)
		for _, to := range []*secret.Passwords{there, here} {
			for _, tried := range []string{password, password + " ", ""} {
				ok, err := to.Verify(t.Context(), hash, tried)
				check.OK(t, err)
				check.Equal(t, tried, ok, tried == password)
			}
		}
	}
	// The first test vector in test.c of the reference implementation that is within our bounds.
	ok, err := there.Verify(t.Context(), "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "password")
	check.OK(t, err)
	check.Equal(t, "the reference implementation's", ok, true)
	check.Equal(t, "places", places, map[bool]int{true: 8})
}

// TestEachCallGetsItsOwnResult makes many calls at once while children are killed.
func TestEachCallGetsItsOwnResult(t *testing.T) {
	p := open(t)
	var calls sync.WaitGroup
	var answered atomic.Int64
	for i := range 4 {
		calls.Go(func() {
			for j := range 30 {
				task := secret.Task{Password: fmt.Sprint(i, j), Salt: []byte("saltsalt"), Memory: 64, Passes: 1, Lanes: 1, Length: 32}
				if j%10 == 9 {
					for _, pid := range p.pids() {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
					p.failing.over() // no pause
				}
				got, err := p.Compute(task)
				if err == nil && !bytes.Equal(got, task.Do()) {
					t.Errorf("%s: the result is another's", task.Password)
				}
				if err == nil {
					answered.Add(1)
				}
			}
		})
	}
	calls.Wait()
	if n := answered.Load(); n < 10 {
		t.Errorf("%d of 120 tasks were computed", n)
	}
}

// TestChildThatDiedWithoutATask: the next task detects the dead child, and another child computes
// the task.
func TestChildThatDiedWithoutATask(t *testing.T) {
	p := open(t)
	c := p.idle[0]
	c.kill()
	<-c.ended
	check.Eventually(t, "another child", func() bool { _, err := p.Compute(own("x")); return err == nil })
}

func TestBadChildrenAreNotUsed(t *testing.T) {
	for mode, says := range map[string]string{
		"exits":           "process ended: exit status 7",
		"refuses":         "lower the priority: operation not permitted",
		"another program": "hashing",
	} {
		t.Run(mode, func(t *testing.T) {
			_, err := Open(Options{environ: []string{childMode + "=" + mode}})
			check.ErrorSays(t, err, says)
		})
	}
	t.Run("no such program", func(t *testing.T) {
		_, err := Open(Options{program: "/nonexistent"})
		check.ErrorSays(t, err, "no such file")
	})
}

// TestBadAnswers: after an invalid answer the password is hashed in the server, and the child gets
// no further tasks.
//
// Attack (sign-ins): A hashing process crashes or misbehaves. An invalid result is not used. The
// processes inherit no environment, and accept bounded tasks only. Also
// hashing.TestEnvironmentOfAChild, hashing.FuzzTask.
func TestBadAnswers(t *testing.T) {
	for mode, want := range map[string]string{
		"dies": "exit status 7", "short": errResult.Error(), "long": errResult.Error(), "empty": errFrame.Error(),
		"huge": errFrame.Error(), "half": "process ended", "silent": "no answer from the process within 50ms",
	} {
		t.Run(mode, func(t *testing.T) {
			var log check.Buffer
			p := open(t, failing(mode), func(o *Options) {
				o.Logger = slog.New(slog.NewTextHandler(&log, nil))
				if mode == "silent" {
					o.Patience = 50 * time.Millisecond
				}
			})
			first := p.idle[0]
			task := own("correct horse")
			passwords := secret.NewPasswords(secret.PasswordOptions{Separate: func(task secret.Task) ([]byte, error) {
				result, err := p.Compute(task)
				check.ErrorSays(t, err, want)
				return result, err
			}})
			hash, err := passwords.Hash(t.Context(), task.Password)
			check.OK(t, err)
			ok, err := secret.NewPasswords(secret.PasswordOptions{}).Verify(t.Context(), hash, task.Password)
			check.OK(t, err)
			check.Equal(t, "hashed in the server", ok, true)
			<-first.ended
			if text := log.String(); !strings.Contains(text, "level=WARN") || strings.Contains(text, "correct horse") {
				t.Errorf("the log is %s", text)
			}
		})
	}
}

func TestIdleChildrenEnd(t *testing.T) {
	p := open(t, func(o *Options) { o.Idle = time.Millisecond })
	gone := func() bool { return len(p.pids()) == 0 }
	check.Eventually(t, "the first has ended", gone)
	_, err := p.Compute(own("x"))
	check.OK(t, err) // an intended end is not a failure
	check.Eventually(t, "the second has ended", gone)
}

func TestClosedPool(t *testing.T) {
	var log check.Buffer
	p := open(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	check.OK(t, syscall.Kill(p.pids()[0], syscall.SIGSTOP)) // so that it does not answer first
	computed := make(chan error)
	go func() { _, err := p.Compute(own("x")); computed <- err }()
	check.Eventually(t, "the child has the task", func() bool { return p.idleChildren() == 0 })
	p.Close()
	if err := <-computed; err == nil {
		t.Error("the task did not fail")
	}
	check.Equal(t, "children", len(p.pids()), 0)
	_, err := p.Compute(own("x"))
	if err == nil {
		t.Error("it computes on")
	}
	check.Equal(t, "the log", log.String(), "") // nothing has failed
}

func TestTasksOutOfBoundsReachNoChild(t *testing.T) {
	p := &Pool{}
	_, err := p.Compute(secret.Task{Password: "x", Salt: []byte("saltsalt"), Memory: 1 << 30, Passes: 1, Lanes: 1, Length: 32})
	check.ErrorIs(t, err, secret.ErrMalformedHash)
}
