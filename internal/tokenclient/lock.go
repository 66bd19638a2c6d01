package tokenclient

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lockPoll is how often a busy lock is tried again.
const lockPoll = 50 * time.Millisecond

// errLocked is returned by tryLock while another process holds the lock.
var errLocked = errors.New("locked by another process")

// lockFile locks a cache file through a file beside it, and returns a function that unlocks it.
// Without the lock two processes could send the same refresh token. The server must treat that as
// theft and revoke the family (RFC 9700 section 4.14.2). The lock ends with its process.
func lockFile(ctx context.Context, path string) (release func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(path), cacheDirMode); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPlace, err)
	}
	//nolint:gosec // G304: the person running this names the file
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, cacheFileMode)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPlace, err)
	}
	if err := waitLock(ctx, f); err != nil {
		return nil, fmt.Errorf("lock the token cache: %w", errors.Join(err, f.Close()))
	}
	return f.Close, nil
}

func waitLock(ctx context.Context, f *os.File) error {
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		if err := tryLock(f); !errors.Is(err, errLocked) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", errLocked, ctx.Err())
		case <-ticker.C:
		}
	}
}
