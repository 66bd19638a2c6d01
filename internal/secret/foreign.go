package secret

import (
	"crypto/pbkdf2"
	"crypto/sha1" //nolint:gosec // G505: of imported hashes; with PBKDF2 its collisions do not matter
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"oauth-server/internal/strict/fielderr"
)

// Password hashes made by other programs can be imported. They are verified until the next correct
// password, which is then hashed anew:
//
//	$argon2id$v=19$m=65536,t=3,p=4$<salt>$<key>   PHC string
//	$2b$12$…, $2a$, $2y$                          bcrypt
//	$pbkdf2-sha256$i=600000,l=32$<salt>$<key>     PHC string; passlib and Keycloak's values write 600000 only
//	pbkdf2_sha256$600000$<salt>$<key>             Django, which uses the text itself as the salt
//
// PBKDF2 may use sha1, sha256 or sha512. Base64 is accepted with or without padding.

// Limits for imported hashes. A sign-in takes at most about a second of one core. Only one hash at
// a time may use more memory than our own hashes.
const (
	maxImportMemory = 128 * 1024     // KiB of argon2id
	maxImportWork   = 4 * 128 * 1024 // KiB times passes
	maxBcryptCost   = 14
	minIterations   = 1000
	maxIterations   = 2_000_000 // of PBKDF2, summed over all blocks of the key
)

// foreignHash is a password hash other than argon2id.
type foreignHash struct {
	kind    string
	matches func(password string) bool
}

// digests are the hash functions of PBKDF2.
var digests = map[string]func() hash.Hash{"sha1": sha1.New, "sha256": sha256.New, "sha512": sha512.New}

// parseForeign parses a password hash other than argon2id.
func parseForeign(stored string) (h foreignHash, err error) {
	malformed := func(format string, args ...any) (foreignHash, error) {
		return foreignHash{}, fmt.Errorf("%w: "+format, append([]any{ErrMalformedHash}, args...)...)
	}
	if len(stored) > maxPHC {
		return malformed("longer than %d bytes", maxPHC)
	}
	for _, prefix := range []string{"$2a$", "$2b$", "$2y$"} {
		if !strings.HasPrefix(stored, prefix) {
			continue
		}
		cost, err := bcrypt.Cost([]byte(stored))
		if err != nil || len(stored) != 60 || cost > maxBcryptCost {
			return malformed("bcrypt hashes have 60 characters and a cost of at most %d", maxBcryptCost)
		}
		return foreignHash{"bcrypt", func(password string) bool {
			return bcrypt.CompareHashAndPassword([]byte(stored), []byte(password)) == nil
		}}, nil
	}
	h, err = parsePBKDF2(stored)
	if err != nil {
		return malformed("%v", err)
	}
	return h, nil
}

func parsePBKDF2(stored string) (h foreignHash, err error) {
	parts, django := strings.Split(strings.TrimPrefix(stored, "$"), "$"), !strings.HasPrefix(stored, "$")
	name := strings.TrimPrefix(strings.ReplaceAll(parts[0], "_", "-"), "pbkdf2-")
	if parts[0] == "pbkdf2" { // passlib's name for PBKDF2 with SHA-1
		name = "sha1"
	}
	digest, known := digests[name]
	if !known || !strings.HasPrefix(parts[0], "pbkdf2") || len(parts) != 4 {
		return h, errors.New("neither argon2id, nor bcrypt, nor PBKDF2 with sha1, sha256 or sha512")
	}
	text, _, _ := strings.Cut(strings.TrimPrefix(parts[1], "i="), ",l=")
	iterations, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return h, fmt.Errorf("%q is not a number of iterations", text)
	}
	salt, errSalt := anyBase64(parts[2])
	if django {
		salt, errSalt = []byte(parts[2]), nil
	}
	key, errKey := anyBase64(parts[3])
	if err := errors.Join(errSalt, errKey); err != nil {
		return h, err
	}
	if len(salt) < minSalt || len(salt) > maxSalt || len(key) < minKey || len(key) > maxKey {
		return h, fmt.Errorf("salt of %d and key of %d bytes, must be %d to %d and %d to %d", len(salt), len(key), minSalt, maxSalt, minKey, maxKey)
	}
	size := digest().Size()
	if work := int(iterations) * ((len(key) + size - 1) / size); iterations < minIterations || work > maxIterations {
		return h, fmt.Errorf("%d iterations, must be %d to %d for all blocks of the key together", iterations, minIterations, maxIterations)
	}
	return foreignHash{"pbkdf2-" + name, func(password string) bool {
		got, err := pbkdf2.Key(digest, password, salt, int(iterations), len(key)) //nolint:gosec // 31 bits
		return err == nil && subtle.ConstantTimeCompare(got, key) == 1
	}}, nil
}

// anyBase64 decodes base64 with or without padding. It also accepts a dot instead of the plus, as
// passlib writes it.
func anyBase64(s string) ([]byte, error) {
	s = strings.NewReplacer(".", "+", "-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil || strings.ContainsAny(s, "\r\n") {
		return nil, errors.New("not base64")
	}
	return b, nil
}

// Foreign returns the kind of a password hash that this program would make differently, such as
// bcrypt. It returns "" for its own hashes and for unreadable ones.
func Foreign(stored string) string {
	if own, err := parseHash(stored); err == nil {
		if own.params == defaultParams && len(own.salt) == saltLength && len(own.key) == keyLength {
			return ""
		}
		return "argon2id with other parameters"
	}
	h, err := parseForeign(stored)
	if err != nil {
		return ""
	}
	return h.kind
}

// CheckForeign returns why a password hash cannot be imported: its kind is unknown, or verifying it
// would cost too much. Errors: [fielderr.Errors].
func CheckForeign(stored string) error {
	if !strings.HasPrefix(stored, "$argon2id$") {
		_, err := parseForeign(stored)
		return importError(err)
	}
	own, err := parseHash(stored)
	if p := own.params; err == nil && (p.memory > maxImportMemory || uint64(p.memory)*uint64(p.passes) > maxImportWork) {
		err = fmt.Errorf("m=%d,t=%d: m must be at most %d, and m times t at most %d", p.memory, p.passes, maxImportMemory, maxImportWork)
	}
	return importError(err)
}

func importError(err error) error {
	if err == nil {
		return nil
	}
	return fielderr.Errors{{Path: "password_hash", Message: strings.TrimPrefix(err.Error(), ErrMalformedHash.Error()+": ")}}
}

// ParseDigest parses the SHA-256 of a generated secret as other programs write it: in hexadecimal
// or base64, with or without {SHA256} before it.
func ParseDigest(text string) (d Digest, err error) {
	for _, prefix := range []string{"{SHA256}", "{SHA-256}", "sha256:"} {
		if len(text) > len(prefix) && strings.EqualFold(text[:len(prefix)], prefix) {
			text = text[len(prefix):]
		}
	}
	if d.UnmarshalText([]byte(text)) == nil && !d.IsZero() {
		return d, nil
	}
	b, err := anyBase64(text)
	if err != nil || len(b) != len(d) || Digest(b).IsZero() {
		return Digest{}, fmt.Errorf("must be a SHA-256: %d hex characters or base64 of %d bytes, with or without {SHA256}", 2*len(d), len(d))
	}
	return Digest(b), nil
}
