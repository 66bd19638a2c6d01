package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/strict/fielderr"
)

// Exit statuses.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// ExitStatus returns the exit status of a command that failed with err.
func ExitStatus(err error) int {
	var usage *usageError
	if errors.As(err, &usage) || fielderr.Of(err) != nil {
		return ExitUsage
	}
	return ExitFailed
}

// ErrReported marks an error that was already printed.
var ErrReported = errors.New("reported")

// usageError is a mistake in the command line or the configuration.
type usageError struct{ err error }

// Error implements error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.err }

// Usage makes err a mistake in the command line or the configuration; the exit status is 2.
func Usage(err error) error { return &usageError{err} }

// Usagef is [Usage] of a formatted error.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// AtMostOne returns a usage error if more than one of the flags is given.
func AtMostOne(cmd *cobra.Command, flags ...string) error {
	given := 0
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			given++
		}
	}
	if last := len(flags) - 1; given > 1 {
		return Usagef("--%s and --%s cannot be used together: give one of them", strings.Join(flags[:last], ", --"), flags[last])
	}
	return nil
}
