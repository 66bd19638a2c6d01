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

// MaxPasswordLength is the longest password in bytes. A longer one is never hashed, because no one
// types it and hashing it would only cost time.
const MaxPasswordLength = 1024

// ErrPasswordLength is returned only by Hash.
var ErrPasswordLength = fmt.Errorf("secret: a password needs 1 to %d bytes", MaxPasswordLength)

// ErrStarved is returned by [PasswordOptions].Separate for a task that it did not compute in time
// because this process uses the processors. Computing the task in this process would use even more
// of them.
var ErrStarved = errors.New("secret: too little processor time for passwords")

// PasswordOptions configure [Passwords]. The zero value is usable.
type PasswordOptions struct {
	// Concurrency is how many hashes may be computed at once. Each takes 19 MiB. Other attempts are
	// queued. Zero means half of GOMAXPROCS, but at most 8, at most as many as fit in a quarter of
	// Memory, and at least one.
	Concurrency int
	// Memory is how many bytes the process may use. Zero means unknown.
	Memory int64
	// Queue is how many attempts may be queued. As many again may be held back because others with
	// their name or from their source are queued. Known attempts have the same room of their own.
	// Zero means 1,000.
	Queue int
	// MaxWait is the longest time that an attempt waits for a slot. Zero means three seconds.
	MaxWait time.Duration
	// Separate, if not nil, computes tasks outside this process. If it fails or its result does not
	// fit, the task is computed in this process, unless the error is [ErrStarved]: then the attempt
	// is refused with a *[BusyError] that has Starved set. At most Concurrency calls run at once.
	Separate func(Task) (result []byte, err error)
	// Hashed, if not nil, is called after each hash. separately is whether Separate computed it.
	Hashed func(separately bool)
}

// AtOnce returns how many hashes may be computed at once: Concurrency or its default.
func (o PasswordOptions) AtOnce() int {
	if o.Concurrency > 0 {
		return o.Concurrency
	}
	return defaultConcurrency(min(runtime.GOMAXPROCS(0), runtime.NumCPU()), o.Memory) // serve may set GOMAXPROCS higher than the number of processors
}

// maxDefaultConcurrency keeps the default small on large machines. 8 concurrent hashes check 400
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
// so only a bounded number run at a time: a flood of sign-ins is queued and leaves processors for
// token requests. No name and no source delays the others for long. An attempt that would wait
// longer than MaxWait is refused with *[BusyError]. It is safe for concurrent use.
type Passwords struct {
	queue    *hashQueue
	separate func(Task) ([]byte, error) // this and the next may be nil
	hashed   func(separately bool)
	// key computes the argon2id key. It allocates memory on each call, because argon2.IDKey accepts
	// no buffer.
	key func(password, salt []byte, passes, memory uint32, lanes uint8, n uint32) []byte
	// big holds a token while a hash that needs more memory than ours is computed, which can only
	// be an imported one. Only one runs at a time, so Concurrency still bounds the memory.
	big chan struct{}
}

// NewPasswords makes Passwords.
func NewPasswords(opts PasswordOptions) *Passwords {
	t := newHashQueue(opts.AtOnce(), cmp.Or(opts.Queue, 1000), cmp.Or(opts.MaxWait, 3*time.Second))
	return &Passwords{
		queue: t, separate: opts.Separate, hashed: opts.Hashed,
		key: argon2.IDKey, big: make(chan struct{}, 1),
	}
}

// Concurrency returns how many hashes may be computed at once.
func (p *Passwords) Concurrency() int { return p.queue.atOnce }

// Attempt is one attempt to sign in.
type Attempt struct {
	Name     string   // whether or not the user exists
	Source   string   // where the attempt comes from
	Networks []string // networks that contain Source, widest first; they share the slots, as sources do
	Password string
	// Known attempts have their own share of the slots, so all other attempts delay them little. An
	// attempt is known if the user exists and has signed in from Source before.
	Known bool
	// Still, if not nil, is called when the attempt gets a slot. If it returns an error, nothing
	// is hashed. It must not consume anything, because the attempt may still be refused afterwards;
	// see [ErrStarved].
	Still func() error
}

// Hash returns the argon2id hash of a password in PHC string format, with a fresh salt. Errors:
// [ErrPasswordLength], *[BusyError], the error of ctx.
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

// Verify reports whether the password matches the hash. It is VerifyAttempt for an attempt without
// a name and a source.
func (p *Passwords) Verify(ctx context.Context, hash, password string) (bool, error) {
	return p.VerifyAttempt(ctx, hash, Attempt{Password: password})
}

// VerifyAttempt reports whether the password matches the hash. It compares in constant time and
// byte for byte, without trimming or normalization. The hash may come from another program; see
// [CheckForeign]. Errors: [ErrMalformedHash], *[BusyError], errors of ctx and of Still.
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
		result, err := p.inQueue(ctx, a, Task{Password: a.Password, Foreign: hash})
		return err == nil && subtle.ConstantTimeCompare(result, resultOf(true)) == 1, err
	}
	key, err := p.derive(ctx, a, h.params, h.salt, len(h.key))
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(h.key, key) == 1, nil
}

// RejectAttempt takes as long as VerifyAttempt, including the queue, for a user who does not exist.
// So the response time does not show which names exist. Errors: as VerifyAttempt.
func (p *Passwords) RejectAttempt(ctx context.Context, a Attempt) error {
	if len(a.Password) > MaxPasswordLength {
		return nil
	}
	var salt [saltLength]byte
	_, err := p.derive(ctx, a, defaultParams, salt[:], keyLength)
	return err
}

// derive waits in the queue and computes the argon2id key.
func (p *Passwords) derive(ctx context.Context, a Attempt, ap argonParams, salt []byte, n int) (key []byte, err error) {
	return p.inQueue(ctx, a, Task{
		Password: a.Password, Salt: salt, Memory: ap.memory, Passes: ap.passes, Lanes: ap.lanes, Length: n,
	})
}

// inQueue waits until the attempt may be hashed and computes the task.
func (p *Passwords) inQueue(ctx context.Context, a Attempt, task Task) ([]byte, error) {
	slot, err := p.queue.acquire(ctx, &a)
	if err != nil {
		return nil, err
	}
	var took time.Duration
	defer func() { p.queue.release(slot, took) }()
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
		return nil, p.queue.starved(slot)
	}
	took = time.Since(began)
	return result, nil
}

// compute computes the task with Separate if possible, and otherwise in this process. It always
// runs to the end, even if the caller disconnects, so an attempt is counted like any other. ok is
// false if the task was not computed at all.
func (p *Passwords) compute(task Task) (result []byte, ok bool) {
	separately := false
	if p.separate != nil {
		r, err := p.separate(task) // it reports its errors itself
		if errors.Is(err, ErrStarved) {
			return nil, false
		}
		if separately = err == nil && task.Fits(r); separately {
			result = r
		}
	}
	if !separately {
		result = task.do(p.key)
	}
	if p.hashed != nil {
		p.hashed(separately)
	}
	return result, true
}
