package tokenclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/oauth2"

	"oauth-server/internal/clientcfg"
)

const (
	cacheFileMode = 0o600 // only the owner has access
	cacheDirMode  = 0o700
	maxCacheSize  = 1 << 20
	lockPoll      = 50 * time.Millisecond // how often a busy lock is tried again
	// maxMargin is the maximum time before its expiry at which a token is no longer used. It keeps
	// a token from expiring on the way to the resource server.
	maxMargin = 30 * time.Second
)

// Errors of the cache, possibly wrapped.
var (
	// ErrExposed means that other users of this machine could read or change the file.
	ErrExposed = errors.New("the cache file is accessible to others")
	// ErrForeign means that the file holds a token of another [Key].
	ErrForeign = errors.New("the cache file holds another token")
	// ErrNoPlace means that the cache file cannot be created.
	ErrNoPlace = errors.New("create the directory of the token cache")
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

// Token is an access token with the rest of the token response.
type Token struct {
	AccessToken  string    `json:"access_token"`
	TokenType    string    `json:"token_type"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Scope        string    `json:"scope,omitempty"`
	ObtainedAt   time.Time `json:"obtained_at"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"` // zero: unknown
}

// entry is the content of a cache file.
type entry struct {
	Key   Key   `json:"key"`
	Token Token `json:"token"`
}

// tokenFrom returns the token of an answer that was received at now.
func tokenFrom(answer *oauth2.Token, now time.Time) Token {
	t := Token{
		AccessToken:  answer.AccessToken,
		TokenType:    answer.Type(),
		RefreshToken: answer.RefreshToken,
		ObtainedAt:   now.UTC(),
	}
	t.Scope, _ = answer.Extra("scope").(string)
	// expires_in is a JSON number. answer.Expiry is not used, because x/oauth2 computes it with the
	// wall clock instead of now.
	if seconds, ok := answer.Extra("expires_in").(float64); ok && seconds > 0 {
		t.ExpiresAt = t.ObtainedAt.Add(time.Duration(seconds * float64(time.Second)))
	}
	return t
}

// Fresh reports whether the token can still be used at now: it is until a tenth of its lifetime
// before it expires, at most half a minute. A nil token and a token of unknown lifetime are never
// fresh.
func (t *Token) Fresh(now time.Time) bool {
	if t == nil || t.AccessToken == "" || t.ExpiresAt.IsZero() {
		return false
	}
	margin := min(t.ExpiresAt.Sub(t.ObtainedAt)/10, maxMargin)
	return now.Before(t.ExpiresAt.Add(-margin))
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
		return "", fmt.Errorf("find a directory for the token cache: %w", err)
	}
	return filepath.Join(dir, "oauth-server", "tokens"), nil
}

// lockFile locks a cache file through a file beside it, and returns a function that unlocks it.
// Without the lock two processes could send the same refresh token. The server must treat that as
// theft and revoke the family (RFC 9700 section 4.14.2). The lock ends with its process.
func lockFile(ctx context.Context, path string) (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), cacheDirMode); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPlace, err)
	}
	lock := flock.New(path+".lock", flock.SetPermissions(cacheFileMode))
	_, err = lock.TryLockContext(ctx, lockPoll)
	switch {
	case err == nil:
		return lock.Unlock, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("lock the token cache: %w", err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNoPlace, err)
}

// loadEntry reads a cache file. It returns nil if the file does not exist, and [ErrExposed] if its
// permissions are looser than 0600. It checks the opened file, which cannot be swapped before the
// read.
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
	switch {
	case err != nil:
		return nil, fmt.Errorf("stat the cache file: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxCacheSize:
		return nil, fmt.Errorf("the cache file %s is not a small regular file", path)
	case info.Mode().Perm()&^cacheFileMode != 0 && runtime.GOOS != "windows": // Windows has access lists instead
		return nil, fmt.Errorf("%w: %s has mode %#o; make it private with chmod 600", ErrExposed, path, info.Mode().Perm())
	}
	text := make([]byte, info.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, fmt.Errorf("read the cache file: %w", err)
	}
	e = &entry{}
	if err := json.Unmarshal(text, e); err != nil {
		return nil, fmt.Errorf("the cache file %s is damaged; remove it: %w", path, err)
	}
	return e, nil
}

// saveEntry replaces the file atomically: a reader, also after a crash, sees the old token or the new
// one.
func saveEntry(path string, e *entry) error {
	text, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("write the cache file: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*") // of mode 0600
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
