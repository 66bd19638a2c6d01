package main

import (
	"errors"
	"fmt"
	"oauth-server/internal/strict/fielderr"
	"strings"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func exitStatus(err error) int {
	var usage *usageError
	if errors.As(err, &usage) || fielderr.Of(err) != nil {
		return exitUsage
	}
	return exitFailed
}

// errReported marks an error that was already printed.
var errReported = errors.New("reported")

// usageError is a mistake in the command line or the configuration; the exit status is 2.
type usageError struct{ err error }

// Error implements error.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// atMostOne returns a usage error if more than one of the flags is given.
func atMostOne(cmd *cobra.Command, flags ...string) error {
	given := 0
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			given++
		}
	}
	if last := len(flags) - 1; given > 1 {
		return usagef("--%s and --%s contradict each other: give one of them", strings.Join(flags[:last], ", --"), flags[last])
	}
	return nil
}
