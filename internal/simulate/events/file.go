package events

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// file is one log. It yields requests in the order of their time.
type file struct {
	name   string
	format Format // empty: the file has no content
	in     *input
	parser *parser
	tally  *tally
	clock  clock
	close  func()

	// held are requests, in order. They wait for earlier requests further down in the file. At most
	// depth wait.
	held   []heldRequest
	depth  int
	sorted bool      // held is sorted, and stays so
	nth    int       // number of requests held so far
	newest time.Time // time of the newest of them
	last   time.Time // time of the request taken last
	done   bool
}

// heldRequest is a request and its position.
type heldRequest struct {
	traffic.Request
	line uint64
	nth  int // position among the held requests
}

// The maximum and minimum number of held requests per file, and the maximum for all files together.
const (
	deepest   = 16 << 10
	shallow   = 1 << 10
	heldInAll = 64 << 10
)

// openFile opens a log and detects its format. It counts lines in t and bytes in n.
func (r *Reader) openFile(name string, t *tally, n *atomic.Int64) (*file, error) {
	f := &file{name: name, tally: t, depth: r.depth}
	from, closeFile := r.o.Stdin, func() error { return nil }
	if name != "-" {
		opened, err := os.Open(name) //nolint:gosec // G304: the caller names the log
		if err != nil {
			return nil, err
		}
		from, closeFile = opened, opened.Close
	}
	content, closeContent := decompressed(&counted{from, n})
	f.close = func() {
		closeContent()
		_ = closeFile() // the file was only read
	}
	if err := f.begin(&r.o, content); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// begin examines the first lines.
func (f *file) begin(o *Options, from io.Reader) error {
	f.clock.zone = o.Zone
	f.in = newInput(from)
	head := f.in.head()
	if space(head, 0) == len(head) {
		f.parser = &parser{}
		return nil
	}
	if err := foreign(f.name, head); err != nil {
		return err
	}
	if f.format = o.Format; f.format == Auto {
		f.format = detect(head, &o.Mapping)
	}
	if f.format == "" {
		return fmt.Errorf("unknown format of %s: give --format, and for json or csv also --map", f.name)
	}
	p, err := newParser(f.format, &o.Mapping, head)
	if err != nil {
		if err = fmt.Errorf("%s: %w", f.name, err); !o.Mapping.empty() {
			err = &MappingError{err}
		}
		return err
	}
	p.clock = &f.clock
	f.parser, f.in.table = p, p.table
	if p.table == nil {
		f.in.doc = documentOf(f.in)
	}
	return nil
}

// fill reads until it holds the maximum number of requests, or the log ends. If strict is set, it
// stops at an unreadable line.
func (f *file) fill(strict bool) error { return f.fillTo(f.depth, strict) }

func (f *file) fillTo(n int, strict bool) error {
	for !f.done && len(f.held) < n {
		if err := f.readLine(); err != nil && strict {
			return err
		}
	}
	f.sort()
	return nil
}

// sort sorts the requests held at first. Inserting them one by one takes long if the newest comes
// first.
func (f *file) sort() {
	if !f.sorted {
		slices.SortFunc(f.held, func(a, b heldRequest) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.nth, b.nth)) })
	}
	f.sorted = true
}

// at returns the time of the next request. There must be one.
func (f *file) at() time.Time { return f.held[0].At }

// take removes the next request.
func (f *file) take() *heldRequest {
	h := &f.held[0]
	f.last, f.held = h.At, f.held[1:]
	return h
}

// begins returns the time of the first request in the first lines, or zero if they have no request.
// The error is the error of backwards.
func (f *file) begins() (time.Time, error) {
	for n := 0; n < 4*deepest && !f.done && len(f.held) < f.depth; n++ {
		_ = f.readLine() // will be read again
	}
	f.sort()
	switch {
	case len(f.held) == 0:
		return time.Time{}, nil
	case len(f.held) == f.depth:
		return f.at(), f.first(false)
	}
	return f.at(), nil
}

// readLine reads one line. If it is a request, it holds the request.
func (f *file) readLine() error {
	record, line, p, ok := f.in.next()
	if !ok {
		f.done = true
		return nil
	}
	h := heldRequest{line: line}
	if p == nil {
		p = f.parse(record, &h.Request)
	}
	switch {
	case p == nil && h.At.Before(f.last):
		p = errLate
	case p == skip:
		f.tally.skipped++
		return nil
	}
	if p != nil {
		return f.tally.unread(p, f.name, line)
	}
	f.tally.read++
	f.nth++
	h.nth = f.nth
	f.hold(&h)
	return nil
}

// parse reads a line. If the line is not of the format, parse unwraps it and reads the inner line.
func (f *file) parse(line []byte, r *traffic.Request) *problem {
	f.clock.stamp = f.in.wrap.stamp
	p := f.parser.parse(line, r)
	for n := 0; n < deepestWrapper && f.isForeign(p); n++ {
		inner, ok := f.in.wrap.unwrap(line)
		if !ok {
			return p
		}
		*r, f.clock.stamp = traffic.Request{}, f.in.wrap.stamp
		line, p = inner, f.parser.parse(inner, r)
	}
	return p
}

// isForeign reports whether the problem shows that a line is not of the format.
func (f *file) isForeign(p *problem) bool {
	return p != nil && (p.field == wholeLine || f.format == JSON && p == f.parser.missing)
}

// hold inserts the request at its place, after others with the same time.
func (f *file) hold(h *heldRequest) {
	late := h.At.Before(f.newest)
	if late {
		f.tally.reordered++
	} else {
		f.newest = h.At
	}
	if !late || !f.sorted {
		f.held = append(f.held, *h)
		return
	}
	at, _ := slices.BinarySearchFunc(f.held, h.At, func(w heldRequest, t time.Time) int {
		if w.At.After(t) {
			return 1
		}
		return -1
	})
	f.held = slices.Insert(f.held, at, *h)
}
