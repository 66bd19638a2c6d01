// Package command has what all commands share: their input and output, settings as flags, help,
// completions, confirmation, and errors that end with status 2.
package command
