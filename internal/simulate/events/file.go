package events

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// parser reads one line of a format into the request, or says why not; nil: it is read. The request is zero before.
type parser interface {
	parse(line []byte, r *traffic.Request) *problem
}

// file is one log, as requests in the order of their time.
type file struct {
	name   string
	format Format // empty: nothing is in it
	in     *input
	parser parser
	tally  *tally
	clock  clock
	close  func()

	// held are requests that wait for earlier ones to turn up behind them, in order, from head on. At most depth wait.
	held   []heldRequest
	head   int
	depth  int
	sorted bool      // held is, and stays
	nth    int       // how many were held until now
	newest time.Time // of them
	last   time.Time // of what was taken last
	done   bool
}

// heldRequest is a request and where it stands.
type heldRequest struct {
	traffic.Request
	line uint64
	nth  int // of those that were held
}

// The most and the fewest requests of one file that are held, and of all files together.
const (
	deepest   = 16 << 10
	shallow   = 1 << 10
	heldInAll = 64 << 10
)

// shared is what the files of one reader share; but for the clock, of which each has its own.
type shared struct {
	Options
	strings *stringTable
	depth   int
	clock   *clock
}

// open opens a log and finds out its format. Lines are counted in t, and bytes in n.
func (c *shared) open(name string, t *tally, n *atomic.Int64) (*file, error) {
	f := &file{name: name, tally: t, depth: c.depth}
	from, closeFile := c.Stdin, func() error { return nil }
	if name != "-" {
		opened, err := os.Open(name) //nolint:gosec // G304: the caller names the log
		if err != nil {
			return nil, err
		}
		from, closeFile = opened, opened.Close
	}
	a := newArchive(&counted{from, n})
	f.close = func() {
		a.close()
		_ = closeFile() // of a file that was only read
	}
	if err := f.begin(c, a); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// begin looks at the first lines.
func (f *file) begin(c *shared, from io.Reader) error {
	mine := *c
	f.clock.zone, mine.clock = c.Zone, &f.clock
	c = &mine
	f.in = newInput(from)
	if head := f.in.head(); bytes.HasPrefix(head, bom) {
		f.in.start += len(bom)
	}
	head := f.in.head()
	if space(head, 0) == len(head) {
		f.parser = blank{}
		return nil
	}
	if err := foreign(f.name, head); err != nil {
		return err
	}
	document := isDocument(head)
	if f.format = c.Format; f.format == Auto {
		f.format = detect(head, document, &c.Mapping)
	}
	if f.format == "" {
		return fmt.Errorf("the format of %s cannot be recognised by its first lines: name it with --format, or json or csv with --map too", f.name)
	}
	p, err := newParser(f.format, c, head)
	if err != nil {
		if err = fmt.Errorf("%s: %w", f.name, err); !c.Mapping.empty() {
			err = &MappingError{err}
		}
		return err
	}
	f.parser, f.in.doc.on = p, document && f.format.documents()
	f.in.table, _ = p.(*table)
	return nil
}

// documents reports whether logs of the format can be one JSON document.
func (f Format) documents() bool { return f != CSV }

// blank is the parser of files in which nothing is.
type blank struct{}

func (blank) parse([]byte, *traffic.Request) *problem { return skip }

// fill reads until it holds as many requests as it may, or the log ends. If it is strict, it stops at a line that
// cannot be read.
func (f *file) fill(strict bool) error { return f.fillTo(f.depth, strict) }

func (f *file) fillTo(n int, strict bool) error {
	for !f.done && len(f.held)-f.head < n {
		if err := f.readLine(); err != nil && strict {
			return err
		}
	}
	f.sort()
	return nil
}

// sort puts in order what was held at first: one by one that takes long if the newest comes first.
func (f *file) sort() {
	if !f.sorted {
		slices.SortFunc(f.held, func(a, b heldRequest) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.nth, b.nth)) })
	}
	f.sorted = true
}

// at is the time of the next request, of which there is one.
func (f *file) at() time.Time { return f.held[f.head].At }

// take removes the next request, which is valid until the next call of fill.
func (f *file) take() *heldRequest {
	h := &f.held[f.head]
	f.last, f.clock.doubt = h.At, 0
	f.head++
	return h
}

// begins returns the time of the first request, as far as the first lines say; zero if they do not. The error is that
// of a log that is backwards.
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

// readLine reads one line and holds its request, if it is one.
func (f *file) readLine() error {
	record, line, p, ok := f.in.next()
	if !ok {
		f.done = true
		return nil
	}
	h := heldRequest{line: line}
	if p == nil {
		p = f.parse(record, &h.Request)
		f.shift()
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

// parse reads a line, or what it is wrapped around if it is not of the format.
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

// isForeign reports whether a line is not of the format, as far as the problem with it says.
func (f *file) isForeign(p *problem) bool {
	m, ok := f.parser.(mappedJSON)
	return p != nil && (p.field == wholeLine || ok && p == m.missing[keyClient])
}

// shift moves what is held to the second of two repeated hours, once that is known.
func (f *file) shift() {
	if f.clock.shift == 0 {
		return
	}
	by := time.Duration(f.clock.shift) * time.Second
	for i := range f.held {
		f.held[i].At = f.held[i].At.Add(by)
	}
	f.newest, f.clock.shift = f.newest.Add(by), 0
}

// hold puts the request in its place; of several at the same time, behind the others.
func (f *file) hold(h *heldRequest) {
	switch n := cap(f.held); {
	case len(f.held) < n:
	case n < 2*f.depth:
		f.held = slices.Grow(f.held, min(3*n+64, 2*f.depth-n))
	default: // at least half of it was taken
		f.held = f.held[:copy(f.held, f.held[f.head:])]
		f.head = 0
	}
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
	waiting := f.held[f.head:]
	at, _ := slices.BinarySearchFunc(waiting, h.At, func(w heldRequest, t time.Time) int {
		if w.At.After(t) {
			return 1
		}
		return -1
	})
	f.held = slices.Insert(f.held, f.head+at, *h)
}
