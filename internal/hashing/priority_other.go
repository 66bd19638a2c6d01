//go:build !linux

package hashing

import (
	"errors"
	"syscall"
)

// program is empty where no children can be started.
const program = ""

func attributes() *syscall.SysProcAttr { return nil }

func prepare() error { return errors.New("only on Linux") }
