package secret

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
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
	// Hashing, if not nil, is called before each hash, which leaves 19 MiB of garbage.
	Hashing func()
}

// maxDefaultConcurrency keeps the default small on large machines: 8 hashes at once check 400
// passwords a second.
const maxDefaultConcurrency = 8

func defaultConcurrency(memory int64) int {
	n := min(maxDefaultConcurrency, runtime.GOMAXPROCS(0)/2, max(1, runtime.NumCPU()/2)) // serve may raise GOMAXPROCS by one
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
	turns   *turns
	hashing func() // may be nil
	// key computes the argon2id key. It allocates the memory anew each time: argon2.IDKey takes none.
	key func(password, salt []byte, passes, memory uint32, lanes uint8, n uint32) []byte
	// big holds a token while a hash is computed that takes more memory than ours: an imported one. There
	// is one at a time, so that Concurrency still bounds the memory.
	big chan struct{}
}

// NewPasswords makes Passwords.
func NewPasswords(opts PasswordOptions) *Passwords {
	if opts.Concurrency <= 0 {
		opts.Concurrency = defaultConcurrency(opts.Memory)
	}
	t := newTurns(opts.Concurrency, cmp.Or(opts.Queue, 1000), cmp.Or(opts.MaxWait, 3*time.Second))
	return &Passwords{turns: t, hashing: opts.Hashing, key: argon2.IDKey, big: make(chan struct{}, 1)}
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
	// before anything is hashed.
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
		ok := false
		err := p.inTurn(ctx, a, 0, func() { ok = foreign.matches(a.Password) })
		return ok && err == nil, err
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
	err = p.inTurn(ctx, a, ap.memory, func() {
		key = p.key([]byte(a.Password), salt, ap.passes, ap.memory, ap.lanes, uint32(n)) //nolint:gosec // G115: n is at most maxKey
	})
	return key, err
}

// inTurn waits for its turn and computes something that takes so much memory, in KiB.
func (p *Passwords) inTurn(ctx context.Context, a Attempt, memory uint32, compute func()) error {
	turn, err := p.turns.acquire(ctx, &a)
	if err != nil {
		return err
	}
	var took time.Duration
	defer func() { p.turns.release(turn, took) }()
	if a.Still != nil {
		if err := a.Still(); err != nil {
			return err
		}
	}
	began := time.Now()
	if memory > defaultParams.memory {
		select {
		case p.big <- struct{}{}:
			defer func() { <-p.big }()
		case <-ctx.Done():
			return fmt.Errorf("secret: wait for memory: %w", ctx.Err())
		}
	}
	if p.hashing != nil {
		p.hashing()
	}
	compute()
	took = time.Since(began)
	return nil
}
