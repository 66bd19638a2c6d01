package secret

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/argon2"
)

// Task is the expensive part of hashing or checking a password, which another process can compute.
// Its result is the argon2id key of a password, or whether a password matches a hash of another
// program.
type Task struct {
	Password string
	// Foreign is a hash other than argon2id; see [CheckForeign]. If it is empty, the task is to
	// compute the key with the parameters below.
	Foreign string

	Salt   []byte
	Memory uint32 // KiB
	Passes uint32
	Lanes  uint8
	Length int // of the key, in bytes
}

// Check returns an error if [Passwords] cannot have made the task, because a parameter is out of
// the bounds of stored hashes. The error quotes nothing of the task.
func (t Task) Check() error {
	if len(t.Password) > MaxPasswordLength {
		return errors.New("secret: password of the task is too long")
	}
	if t.Foreign != "" {
		if len(t.Salt) > 0 || t.Memory|t.Passes|uint32(t.Lanes) != 0 || t.Length != 0 {
			return errors.New("secret: task of two kinds")
		}
		if _, err := parseForeign(t.Foreign); err != nil {
			return ErrMalformedHash
		}
		return nil
	}
	h := passwordHash{params: argonParams{memory: t.Memory, passes: t.Passes, lanes: t.Lanes}, salt: t.Salt}
	if t.Length < minKey || t.Length > maxKey {
		return fmt.Errorf("%w: length of the key", ErrMalformedHash)
	}
	h.key = make([]byte, t.Length)
	_, err := parseHash(h.String()) // checks the bounds
	if err != nil {
		return ErrMalformedHash
	}
	return nil
}

// Do computes the task, which [Task.Check] must have accepted. It returns the key or, for a Foreign
// hash, one byte: 1 if the password matches, and 0 otherwise.
func (t Task) Do() []byte { return t.do(argon2.IDKey) }

func (t Task) do(key func(password, salt []byte, passes, memory uint32, lanes uint8, n uint32) []byte) []byte {
	if t.Foreign != "" {
		h, err := parseForeign(t.Foreign)
		return resultOf(err == nil && h.matches(t.Password))
	}
	return key([]byte(t.Password), t.Salt, t.Passes, t.Memory, t.Lanes, uint32(t.Length)) //nolint:gosec // G115: at most maxKey
}

// Fits reports whether result has the form of a result of this task.
func (t Task) Fits(result []byte) bool {
	if t.Foreign != "" {
		return len(result) == 1 && result[0] <= 1
	}
	return len(result) == t.Length
}

// Own reports whether the task is for this program's own kind of hash, with its usual time and
// memory.
func (t Task) Own() bool {
	return t.Foreign == "" && argonParams{memory: t.Memory, passes: t.Passes, lanes: t.Lanes} == defaultParams
}

// resultOf returns the result for a hash of another program.
func resultOf(matches bool) []byte {
	if matches {
		return []byte{1}
	}
	return []byte{0}
}
