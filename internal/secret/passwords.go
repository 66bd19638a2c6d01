package secret

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/crypto/argon2"
)

// MaxPasswordLength is the longest password in bytes. A longer one is never hashed: no one types
// it, and hashing it would only cost time.
const MaxPasswordLength = 1024

// ErrPasswordLength is returned by Hash only.
var ErrPasswordLength = fmt.Errorf("secret: a password needs 1 to %d bytes", MaxPasswordLength)

// ErrStarved is the error of [PasswordOptions].Separate for a task that was not computed in time because this process
// uses the processors. To compute it here would take even more of them.
var ErrStarved = errors.New("secret: the server leaves too little of the processors for passwords")

// PasswordOptions configure [Passwords]. The zero value is usable.
type PasswordOptions struct {
	// Concurrency is how many hashes may be computed at once, each of which takes 19 MiB; the others
	// wait for their turn. Zero means half of GOMAXPROCS, but at most 8 and at most what a quarter of
	// Memory is enough for; at least one.
	Concurrency int
	// Memory is how many bytes the process may use; zero if that is not known.
	Memory int64
	// Queue is how many may wait for their turn, and how many more may be held back because others
	// with their name or from their source are waiting; as many again if they are known. Zero means
	// 1,000.
	Queue int
	// MaxWait is the longest that an attempt waits for its turn. Zero means three seconds.
	MaxWait time.Duration
	// Separate, if not nil, computes tasks outside of this process. One that it fails to compute, or whose
	// result does not fit, is computed here, unless the error is [ErrStarved]: that attempt is refused with
	// *[BusyError] that says so. It is called at most Concurrency times at once.
	Separate func(Task) (result []byte, err error)
	// Hashing, if not nil, is called before each hash in this process, which leaves 19 MiB of garbage.
	Hashing func()
	// Hashed, if not nil, is called after each hash, with whether Separate computed it.
	Hashed func(separately bool)
}

// AtOnce returns how many hashes may be computed at once: Concurrency, or what its zero means.
func (o PasswordOptions) AtOnce() int {
	if o.Concurrency > 0 {
		return o.Concurrency
	}
	return defaultConcurrency(min(runtime.GOMAXPROCS(0), runtime.NumCPU()), o.Memory) // serve may have one place more
}

// maxDefaultConcurrency keeps the default small on large machines: 8 hashes at once check 400
// passwords a second.
const maxDefaultConcurrency = 8

func defaultConcurrency(processors int, memory int64) int {
	n := min(maxDefaultConcurrency, processors/2)
	if memory > 0 {
		n = int(min(int64(n), memory/4/(int64(defaultParams.memory)<<10)))
	}
	return max(1, n)
}

// Passwords hashes and checks people's passwords with argon2id. Each check is expensive on purpose,
// so a bounded number run at a time: a flood of sign-ins waits in line and leaves processors to
// token requests. No name and no source delays the others for long, and an attempt that would
// wait for longer than MaxWait is refused with *[BusyError]. It is safe for concurrent use.
type Passwords struct {
	turns    *turns
	separate func(Task) ([]byte, error) // may be nil, as the next two
	hashing  func()
	hashed   func(separately bool)
	// key computes the argon2id key. It allocates the memory anew each time: argon2.IDKey takes none.
	key func(password, salt []byte, passes, memory uint32, lanes uint8, n uint32) []byte
	// big holds a token while a hash is computed that takes more memory than ours: an imported one. There
	// is one at a time, so that Concurrency still bounds the memory.
	big chan struct{}
}

// NewPasswords makes Passwords.
func NewPasswords(opts PasswordOptions) *Passwords {
	t := newTurns(opts.AtOnce(), cmp.Or(opts.Queue, 1000), cmp.Or(opts.MaxWait, 3*time.Second))
	return &Passwords{
		turns: t, separate: opts.Separate, hashing: opts.Hashing, hashed: opts.Hashed,
		key: argon2.IDKey, big: make(chan struct{}, 1),
	}
}

// Concurrency returns how many hashes may be computed at once.
func (p *Passwords) Concurrency() int { return p.turns.atOnce }

// Attempt is one attempt to sign in.
type Attempt struct {
	Name     string   // whether or not there is such a user
	Source   string   // where it comes from
	Networks []string // those that Source is in, the widest first; they share the turns, like sources
	Password string
	// Known attempts have turns of their own, so that all others delay them little. The user exists,
	// and has signed in from Source before.
	Known bool
	// Still, if it is not nil, is called when the attempt has its turn. Its error ends the attempt
	// before anything is hashed. It must use up nothing: the attempt may be refused after it, see [ErrStarved].
	Still func() error
}

// Hash returns the argon2id hash of a password in PHC string format, with a fresh salt. Errors:
// [ErrPasswordLength], *[BusyError], that of ctx.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	if password == "" || len(password) > MaxPasswordLength {
		return "", ErrPasswordLength
	}
	h := passwordHash{params: defaultParams, salt: make([]byte, saltLength)}
	_, _ = rand.Read(h.salt) // crypto/rand.Read never fails: it crashes the program instead.
	key, err := p.derive(ctx, Attempt{Password: password}, h.params, h.salt, keyLength)
	if err != nil {
		return "", err
	}
	h.key = key
	return h.String(), nil
}

// Verify reports whether the password belongs to the hash. It is VerifyAttempt for an attempt without
// a name and a source.
func (p *Passwords) Verify(ctx context.Context, hash, password string) (bool, error) {
	return p.VerifyAttempt(ctx, hash, Attempt{Password: password})
}

// VerifyAttempt reports whether the password belongs to the hash, comparing in constant time and byte
// for byte: nothing is trimmed or normalized. The hash may be of another program, see [CheckForeign].
// Errors: [ErrMalformedHash], *[BusyError], those of ctx and of Still.
func (p *Passwords) VerifyAttempt(ctx context.Context, hash string, a Attempt) (bool, error) {
	h, err := parseHash(hash)
	var foreign foreignHash
	if err != nil {
		if foreign, _ = parseForeign(hash); foreign.matches == nil {
			return false, err
		}
	}
	if len(a.Password) > MaxPasswordLength {
		return false, nil
	}
	if foreign.matches != nil {
		result, err := p.inTurn(ctx, a, Task{Password: a.Password, Foreign: hash})
		return err == nil && subtle.ConstantTimeCompare(result, resultOf(true)) == 1, err
	}
	key, err := p.derive(ctx, a, h.params, h.salt, len(h.key))
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(h.key, key) == 1, nil
}

// RejectAttempt spends the time of a VerifyAttempt, and waits like one, for a user who does not exist,
// so that the time of an answer does not show which names exist. Errors: those of VerifyAttempt.
func (p *Passwords) RejectAttempt(ctx context.Context, a Attempt) error {
	if len(a.Password) > MaxPasswordLength {
		return nil
	}
	var salt [saltLength]byte
	_, err := p.derive(ctx, a, defaultParams, salt[:], keyLength)
	return err
}

// derive waits for its turn and computes the argon2id key.
func (p *Passwords) derive(ctx context.Context, a Attempt, ap argonParams, salt []byte, n int) (key []byte, err error) {
	return p.inTurn(ctx, a, Task{
		Password: a.Password, Salt: salt, Memory: ap.memory, Passes: ap.passes, Lanes: ap.lanes, Length: n,
	})
}

// inTurn waits for its turn and computes the task.
func (p *Passwords) inTurn(ctx context.Context, a Attempt, task Task) ([]byte, error) {
	turn, err := p.turns.acquire(ctx, &a)
	if err != nil {
		return nil, err
	}
	var took time.Duration
	defer func() { p.turns.release(turn, took) }()
	if a.Still != nil {
		if err := a.Still(); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	if task.Memory > defaultParams.memory {
		select {
		case p.big <- struct{}{}:
			defer func() { <-p.big }()
		case <-ctx.Done():
			return nil, fmt.Errorf("secret: wait for memory: %w", ctx.Err())
		}
	}
	result, ok := p.compute(task)
	if !ok {
		return nil, p.turns.starved(turn)
	}
	took = time.Since(began)
	return result, nil
}

// compute computes the task elsewhere if that is possible, else here. It goes on to its end when the caller
// hangs up, so that an attempt is counted like any other. ok is false if it is to be computed nowhere.
func (p *Passwords) compute(task Task) (result []byte, ok bool) {
	separately := false
	if p.separate != nil {
		r, err := p.separate(task) // which reports its errors itself
		if errors.Is(err, ErrStarved) {
			return nil, false
		}
		if separately = err == nil && task.Fits(r); separately {
			result = r
		}
	}
	if !separately {
		if p.hashing != nil {
			p.hashing()
		}
		result = task.do(p.key)
	}
	if p.hashed != nil {
		p.hashed(separately)
	}
	return result, true
}
