package strict

import (
	"bytes"
	"fmt"
)

// position adds the position in the document to an error, as line and column, counted in bytes from
// 1.
func position(b []byte, offset int64, err error) error {
	before := b[:min(offset, int64(len(b)))]
	line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("line %d, column %d: %w", line, column, err)
}
