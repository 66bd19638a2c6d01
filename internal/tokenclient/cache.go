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

// Modes of the files and directories of the cache: only the owner has access.
const (
	cacheFileMode = 0o600
	cacheDirMode  = 0o700
	maxCacheSize  = 1 << 20
)

// Errors of the cache, possibly wrapped.
var (
	// ErrExposed means that other users of this machine could read or change the file.
	ErrExposed = errors.New("the cache file is accessible to others")
	// ErrForeign means that the file holds a token of another [Key].
	ErrForeign = errors.New("the cache file holds another token")
	// ErrNoPlace means that the cache file cannot be created.
	ErrNoPlace = errors.New("make a place for the token cache")
)

// Key identifies the request for a token. In [Request.CacheDir] each key has its own file.
type Key struct {
	Issuer   string          `json:"issuer"`
	ClientID string          `json:"client_id"`
	Grant    clientcfg.Grant `json:"grant_type"`
	Username string          `json:"username,omitempty"`
	Scope    string          `json:"scope,omitempty"` // requested, sorted
	// From is the SHA-256 of [Request.RefreshToken], if any. A refresh token given a second time
	// must not be sent again, because it was rotated.
	From string `json:"from,omitempty"`
}

// entry is the content of a cache file.
type entry struct {
	Key   Key   `json:"key"`
	Token Token `json:"token"`
}

// DefaultCacheDir returns the directory for cache files, below the user's cache directory. It
// returns an error if the parent, such as HOME, is not a directory. It does not create a missing
// home directory.
func DefaultCacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err == nil {
		var info fs.FileInfo
		if info, err = os.Stat(filepath.Dir(dir)); err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", filepath.Dir(dir))
		}
	}
	if err != nil {
		return "", fmt.Errorf("find a place for the token cache: %w", err)
	}
	return filepath.Join(dir, "oauth-server", "tokens"), nil
}

// fileName returns the name of the cache file of the key. It is a hash, because an issuer or a
// username may contain any character.
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

// loadEntry reads a cache file. It returns nil if the file does not exist, and [ErrExposed] if its
// permissions are looser than 0600.
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

// checkPrivate checks the file that was opened, so the file cannot be swapped between this check and
// the read.
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

// saveEntry replaces the file atomically: a reader, also after a crash, sees the old token or the new
// one.
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
