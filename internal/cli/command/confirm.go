package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// errNotAgreed is returned when a change was not confirmed.
var errNotAgreed = errors.New("nothing was changed")

const maxAnswerLine = 100

// Confirm asks whether to continue, and returns [errNotAgreed] unless the answer is yes.
func (c *Env) Confirm() error {
	_, _ = fmt.Fprint(c.ErrOut, "Continue? [y/N] ")
	line, err := bufio.NewReader(io.LimitReader(c.In, maxAnswerLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read your answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	case "":
		if errors.Is(err, io.EOF) {
			c.Note("")
			return fmt.Errorf("%w, because there was no answer; confirm with --yes", errNotAgreed)
		}
	}
	return errNotAgreed
}
