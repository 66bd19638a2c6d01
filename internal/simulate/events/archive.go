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

// widestWindow is how much of a zstd stream is kept while it is decompressed, at most: what zstd takes by default.
const widestWindow = 128 << 20

// errFile marks an error that is of the file and not of what is in it.
var errFile = errors.New("file")

// counted counts what is read, as it is stored.
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

// archive decompresses a stream if its first bytes are those of gzip or zstd.
type archive struct {
	from  *bufio.Reader
	plain io.Reader // nil until the first read
	close func()
}

func newArchive(from io.Reader) *archive {
	return &archive{from: bufio.NewReaderSize(from, 64<<10), close: func() {}}
}

// Read implements [io.Reader].
func (a *archive) Read(p []byte) (int, error) {
	if a.plain == nil {
		if err := a.begin(); err != nil {
			a.plain = failing{err}
		}
	}
	return a.plain.Read(p)
}

// failing is a reader that only has an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func (a *archive) begin() error {
	magic, err := a.from.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(a.from)
		if err != nil {
			return endedEarly(err)
		}
		z.Multistream(false)
		a.plain = &members{z, a.from}
	case isZstandard(magic):
		z, err := zstd.NewReader(a.from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(widestWindow))
		if err != nil {
			return err
		}
		a.plain, a.close = z, z.Close
	default:
		a.plain = a.from
	}
	return nil
}

// isZstandard reports whether a file begins with a frame of zstd, or one to be skipped (RFC 8878 3.1.2), as parallel
// compressors and formats that can be read from any place write it.
func isZstandard(magic []byte) bool {
	return len(magic) == 4 && (bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}) || magic[0]&0xf0 == 0x50 && bytes.Equal(magic[1:], []byte{0x2a, 0x4d, 0x18}))
}

// members reads all members of a gzip file. Zeros behind one are padding, as gzip takes them for.
type members struct {
	*gzip.Reader
	from *bufio.Reader
}

// Read implements [io.Reader].
func (m *members) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	for {
		next, err := m.from.ReadByte()
		switch {
		case err != nil:
			return n, err
		case next == 0:
			continue
		}
		if err = m.from.UnreadByte(); err == nil {
			err = endedEarly(m.Reset(m.from))
		}
		m.Multistream(false)
		return n, err
	}
}

// endedEarly is the error of the header of an archive: there is one, so its end is not that of the file.
func endedEarly(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// size returns the size of a file, and whether it is one that can be read twice.
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
