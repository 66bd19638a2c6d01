package secret

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
)

// ErrMalformedHash is wrapped by every error for a stored password hash that cannot be read.
var ErrMalformedHash = errors.New("secret: malformed password hash")

// argonParams are the cost parameters of argon2id (RFC 9106 3.1).
type argonParams struct {
	memory uint32 // KiB
	passes uint32
	lanes  uint8
}

// defaultParams are the second choice of the OWASP password storage cheat sheet: 19 MiB, two
// passes, one lane; about 18 ms of one core.
var defaultParams = argonParams{memory: 19 * 1024, passes: 2, lanes: 1}

// Limits for stored hashes. They keep a damaged or planted record from costing gigabytes or minutes
// per sign-in.
const (
	maxMemory  = 256 * 1024 // KiB
	maxPasses  = 16
	maxLanes   = 16
	minSalt    = 8
	maxSalt    = 64
	minKey     = 16
	maxKey     = 64
	maxPHC     = 512
	saltLength = 16
	keyLength  = 32
)

// passwordHash is a parsed PHC string of argon2id, such as
// $argon2id$v=19$m=19456,t=2,p=1$<salt>$<key>.
type passwordHash struct {
	params argonParams
	salt   []byte
	key    []byte
}

func (h passwordHash) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		h.params.memory, h.params.passes, h.params.lanes, b64.EncodeToString(h.salt), b64.EncodeToString(h.key))
}

// parseHash parses the output of String, and refuses parameters out of bounds. It is strict: if it
// accepts a text, String returns the same text byte for byte.
func parseHash(s string) (passwordHash, error) {
	if len(s) > maxPHC {
		return passwordHash{}, fmt.Errorf("%w: longer than %d bytes", ErrMalformedHash, maxPHC)
	}
	parts := strings.Split(s, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return passwordHash{}, fmt.Errorf("%w: not an argon2id PHC string", ErrMalformedHash)
	}
	if parts[2] != "v="+strconv.Itoa(argon2.Version) {
		return passwordHash{}, fmt.Errorf("%w: unknown version", ErrMalformedHash)
	}
	params, err := parseParams(parts[3])
	if err != nil {
		return passwordHash{}, err
	}
	salt, err := decodeBounded(parts[4], minSalt, maxSalt)
	if err != nil {
		return passwordHash{}, fmt.Errorf("%w: salt: %w", ErrMalformedHash, err)
	}
	key, err := decodeBounded(parts[5], minKey, maxKey)
	if err != nil {
		return passwordHash{}, fmt.Errorf("%w: key: %w", ErrMalformedHash, err)
	}
	return passwordHash{params: params, salt: salt, key: key}, nil
}

// parseParams reads "m=19456,t=2,p=1", in this order, as the PHC format requires.
func parseParams(s string) (argonParams, error) {
	fields := strings.Split(s, ",")
	if len(fields) != 3 {
		return argonParams{}, fmt.Errorf("%w: parameters need m, t and p", ErrMalformedHash)
	}
	m, errM := parseParam(fields[0], "m=", maxMemory)
	t, errT := parseParam(fields[1], "t=", maxPasses)
	p, errP := parseParam(fields[2], "p=", maxLanes)
	if err := errors.Join(errM, errT, errP); err != nil {
		return argonParams{}, fmt.Errorf("%w: %w", ErrMalformedHash, err)
	}
	if m < 8*p {
		return argonParams{}, fmt.Errorf("%w: m must be at least 8p", ErrMalformedHash)
	}
	return argonParams{memory: m, passes: t, lanes: uint8(p)}, nil //nolint:gosec // G115: p is at most maxLanes
}

func parseParam(field, name string, limit uint64) (uint32, error) {
	digits, ok := strings.CutPrefix(field, name)
	n, err := strconv.ParseUint(digits, 10, 32)
	if !ok || err != nil || n < 1 || n > limit || digits[0] == '0' {
		return 0, fmt.Errorf("parameter %q must be a number from 1 to %d", name, limit)
	}
	return uint32(n), nil
}

func decodeBounded(s string, least, most int) ([]byte, error) {
	b, err := base64.RawStdEncoding.Strict().DecodeString(s)
	if err != nil || strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("not base64 without padding")
	}
	if len(b) < least || len(b) > most {
		return nil, fmt.Errorf("%d bytes, not %d to %d", len(b), least, most)
	}
	return b, nil
}
