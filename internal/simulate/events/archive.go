package events

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// widestWindow bounds how much of a zstd stream is kept during decompression. It is the default
// maximum of zstd.
const widestWindow = 128 << 20

// errFile marks an error of the file itself and not of its content.
var errFile = errors.New("file")

// counted counts the bytes read, as stored.
type counted struct {
	from io.Reader
	n    *atomic.Int64
}

// Read implements [io.Reader].
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n.Add(int64(n))
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errFile, err)
	}
	return n, err
}

// decompressed returns the content of a stream. It decompresses one that begins with the magic
// number of gzip or zstd. A stream that cannot be decompressed has an error when it is read.
func decompressed(from io.Reader) (content io.Reader, closeContent func()) {
	b, nothing := bufio.NewReaderSize(from, 64<<10), func() {}
	magic, err := b.Peek(4)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return failing{err}, nothing
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return failing{err}, nothing
		}
		return z, nothing
	case isZstandard(magic):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(widestWindow))
		if err != nil {
			return failing{err}, nothing
		}
		return z, z.Close
	}
	return b, nothing
}

// failing is a reader that always returns an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// isZstandard reports whether a file begins with a frame of zstd, or with a skippable frame (RFC
// 8878 3.1.2). Parallel compressors and seekable formats write skippable frames.
func isZstandard(magic []byte) bool {
	return len(magic) == 4 && (bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}) || magic[0]&0xf0 == 0x50 && bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18}))
}

// size returns the size of a file, and whether the file can be read twice.
func size(name string) (n int64, regular bool, err error) {
	if name == "-" {
		return 0, false, nil
	}
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return 0, false, err
	case info.IsDir():
		return 0, false, fmt.Errorf("%s is a directory", name)
	}
	return info.Size(), info.Mode().IsRegular(), nil
}
