package tokenclient

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"oauth-server/internal/clientcfg"
)

// Modes of what the cache makes: nobody but the owner.
const (
	cacheFileMode = 0o600
	cacheDirMode  = 0o700
	maxCacheSize  = 1 << 20
)

// Errors of the cache, possibly wrapped.
var (
	// ErrExposed: others on this machine could read or change the file.
	ErrExposed = errors.New("the cache file is accessible to others")
	// ErrForeign: the file holds a token got in another way.
	ErrForeign = errors.New("the cache file holds another token")
)

// Key names what a token was got for. Tokens of different keys are never
// mixed up: each has a file of its own.
type Key struct {
	Issuer   string          `json:"issuer"`
	ClientID string          `json:"client_id"`
	Grant    clientcfg.Grant `json:"grant_type"`
	Username string          `json:"username,omitempty"`
	Scope    string          `json:"scope,omitempty"` // asked for, sorted
	// From is the SHA-256 of the refresh token that the person gave, if any:
	// given again, it must not be sent again, for it was rotated.
	From string `json:"from,omitempty"`
}

// entry is what a cache file holds.
type entry struct {
	Key   Key   `json:"key"`
	Token Token `json:"token"`
}

// DefaultCacheDir is where cache files lie unless one is named.
func DefaultCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for the token cache: %w", err)
	}
	return filepath.Join(dir, "oauth-server", "tokens"), nil
}

// fileName is the cache file of the key below a directory. It is a hash: an
// issuer or a username may hold anything.
func (k Key) fileName() string {
	// A struct of strings always marshals.
	text, _ := json.Marshal(k)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]) + ".json"
}

func normalScope(scopes []string) string {
	sorted := slices.Clone(scopes)
	slices.Sort(sorted)
	return strings.Join(slices.Compact(sorted), " ")
}

// loadEntry reads a cache file; one that is not there is no error but nil.
// A file with looser permissions than 0600 is refused with [ErrExposed], one
// that cannot be read as an entry with an error that names it.
func loadEntry(path string) (e *entry, err error) {
	f, err := os.Open(path) //nolint:gosec // G304: the person running this names the file
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the cache file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at the cache file: %w", err)
	}
	if err := checkPrivate(path, info); err != nil {
		return nil, err
	}
	text := make([]byte, info.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, fmt.Errorf("read the cache file: %w", err)
	}
	e = &entry{}
	if err := json.Unmarshal(text, e); err != nil {
		return nil, fmt.Errorf("the cache file %s is damaged, remove it: %w", path, err)
	}
	return e, nil
}

// checkPrivate is about the file that was opened, so nobody can swap it
// between the look and the read.
func checkPrivate(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() || info.Size() > maxCacheSize {
		return fmt.Errorf("the cache file %s is not a regular file of a sensible size", path)
	}
	// Windows has access lists instead; the bits there mean nothing.
	if open := info.Mode().Perm() &^ cacheFileMode; open != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%w: %s has mode %#o, make it private with chmod 600", ErrExposed, path, info.Mode().Perm())
	}
	return nil
}

// saveEntry replaces the file in one step: whoever reads it sees the old
// token or the new one, and a crash leaves one of the two.
func saveEntry(path string, e *entry) (err error) {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("write the cache file: %w", err)
	}
	// CreateTemp makes files of mode 0600.
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*")
	if err != nil {
		return fmt.Errorf("write the cache file: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the cache file: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
