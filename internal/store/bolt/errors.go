package bolt

import "errors"

// Errors of [Open] and of a store in use, wrapped with the file's path or the operation.
var (
	// ErrLocked: another process has the file open.
	ErrLocked = errors.New("the data file is in use by another process, probably a running server: stop it first")
	// ErrForeign: the file was not made by this program.
	ErrForeign = errors.New("not a data file of oauth-server")
	// ErrNewerFormat: the file was written by a later release.
	ErrNewerFormat = errors.New("the data file was written by a newer release of oauth-server: use that release")
	// ErrCorrupt: the file is damaged.
	ErrCorrupt = errors.New("the data file is damaged")
	// ErrClosed: the store was closed before the call.
	ErrClosed = errors.New("the store is closed")
	// ErrFailed: an earlier commit ended in an unknown state, so every call fails until the process
	// restarts and reads the file again.
	ErrFailed = errors.New("the store stopped after a failed write: check the disk, then restart")
)
