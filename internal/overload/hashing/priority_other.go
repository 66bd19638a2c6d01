//go:build !linux

package hashing

import (
	"errors"
	"syscall"
)

// program is empty on systems that cannot start children.
const program = ""

func attributes() *syscall.SysProcAttr { return nil }

func prepare() error { return errors.New("only on Linux") }
