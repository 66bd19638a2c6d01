package secret

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/crypto/argon2"
)

// MaxPasswordLength is the longest password in bytes. A longer one is never hashed: no one types
// it, and hashing it would only cost time.
const MaxPasswordLength = 1024

// Errors of [Passwords].
var (
	// ErrPasswordLength is returned by Hash only.
	ErrPasswordLength = fmt.Errorf("secret: a password needs 1 to %d bytes", MaxPasswordLength)
	// ErrBusy is returned when the queue is full.
	ErrBusy = errors.New("secret: too many passwords are being checked")
)

// PasswordOptions configure [Passwords]. The zero value is usable.
type PasswordOptions struct {
	// Concurrency is how many hashes may be computed at once; the others wait for their turn. Zero
	// means half of GOMAXPROCS, at least one.
	Concurrency int
	// Queue is how many may wait for their turn. Zero means 1,000.
	Queue int
}

// Passwords hashes and checks people's passwords with argon2id. Each check is expensive on purpose,
// so a bounded number run at a time: a flood of sign-ins waits in line and leaves processors to
// token requests. It is safe for concurrent use.
type Passwords struct {
	turns   chan struct{}
	waiting atomic.Int64
	queue   int64
}

// NewPasswords makes Passwords.
func NewPasswords(opts PasswordOptions) *Passwords {
	if opts.Concurrency <= 0 {
		opts.Concurrency = max(1, runtime.GOMAXPROCS(0)/2)
	}
	if opts.Queue <= 0 {
		opts.Queue = 1000
	}
	return &Passwords{turns: make(chan struct{}, opts.Concurrency), queue: int64(opts.Queue)}
}

// Hash returns the argon2id hash of a password in PHC string format, with a fresh salt. Errors:
// [ErrPasswordLength], [ErrBusy], that of ctx.
func (p *Passwords) Hash(ctx context.Context, password string) (string, error) {
	if password == "" || len(password) > MaxPasswordLength {
		return "", ErrPasswordLength
	}
	h := passwordHash{params: defaultParams, salt: make([]byte, saltLength)}
	_, _ = rand.Read(h.salt) // crypto/rand.Read never fails: it crashes the program instead.
	key, err := p.derive(ctx, h.params, h.salt, password, keyLength, nil)
	if err != nil {
		return "", err
	}
	h.key = key
	return h.String(), nil
}

// Verify reports whether the password belongs to the hash, comparing in constant time and byte for
// byte: nothing is trimmed or normalized. Errors: [ErrMalformedHash], [ErrBusy], that of ctx.
func (p *Passwords) Verify(ctx context.Context, hash, password string) (bool, error) {
	return p.VerifyIf(ctx, hash, password, nil)
}

// VerifyIf is Verify with a last check: still, if it is not nil, is called when the attempt has its
// turn, and its error ends the attempt before anything is hashed. Errors: those of Verify and of
// still.
func (p *Passwords) VerifyIf(ctx context.Context, hash, password string, still func() error) (bool, error) {
	h, err := parseHash(hash)
	if err != nil {
		return false, err
	}
	if len(password) > MaxPasswordLength {
		return false, nil
	}
	key, err := p.derive(ctx, h.params, h.salt, password, len(h.key), still)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(h.key, key) == 1, nil
}

// RejectIf spends the time of a VerifyIf on a user who does not exist, so that the time of an
// answer does not show which names exist. Errors: those of VerifyIf.
func (p *Passwords) RejectIf(ctx context.Context, password string, still func() error) error {
	if len(password) > MaxPasswordLength {
		return nil
	}
	var salt [saltLength]byte
	_, err := p.derive(ctx, defaultParams, salt[:], password, keyLength, still)
	return err
}

// derive waits for its turn and computes the argon2id key.
func (p *Passwords) derive(ctx context.Context, ap argonParams, salt []byte, password string, n int, still func() error) ([]byte, error) {
	if err := p.acquire(ctx); err != nil {
		return nil, err
	}
	defer func() { <-p.turns }()
	if still != nil {
		if err := still(); err != nil {
			return nil, err
		}
	}
	return argon2.IDKey([]byte(password), salt, ap.passes, ap.memory, ap.lanes, uint32(n)), nil //nolint:gosec // G115: n is at most maxKey
}

func (p *Passwords) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("secret: wait for a turn: %w", err)
	}
	select {
	case p.turns <- struct{}{}:
		return nil
	default:
	}
	if p.waiting.Add(1) > p.queue {
		p.waiting.Add(-1)
		return ErrBusy
	}
	defer p.waiting.Add(-1)
	select {
	case p.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("secret: wait for a turn: %w", ctx.Err())
	}
}
