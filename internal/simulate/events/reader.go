package events

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"oauth-server/internal/simulate/traffic"
)

// Reader yields the token requests of logs in the order of their time. It implements [traffic.Source]. Only
// [Reader.Progress] may be called while another method runs.
type Reader struct {
	o       Options
	depth   int // requests that wait per file
	tally   tally
	files   []traffic.File
	read    atomic.Int64 // bytes
	total   int64
	unknown bool      // the total number of bytes is unknown
	waiting []laterOn // files to open later, the next one last
	open    []*file   // by the time of their next request
	taken   bool      // the first request of open was taken
	last    time.Time
	err     error
}

// laterOn is a file that is opened when its first request comes.
type laterOn struct {
	name   string
	first  time.Time
	opened *file // already open, if it cannot be opened twice; nil: not open
}

// Open opens logs; the name "-" is the standard input. It reads the first lines of each. It returns
// an error if a file cannot be opened, is of no known format, or has its newest requests first and
// too many of them to sort. The caller must close the reader.
//
// A file is open only from its first request on, so there can be many files.
func Open(names []string, o Options) (*Reader, error) {
	if err := o.validate(names); err != nil {
		return nil, err
	}
	r := &Reader{o: o, depth: min(max(heldInAll/len(names), shallow), deepest)}
	for _, name := range names {
		if err := r.add(name, len(names) == 1); err != nil {
			r.Close()
			return nil, err
		}
	}
	slices.SortStableFunc(r.waiting, func(a, b laterOn) int { return b.first.Compare(a.first) })
	return r, nil
}

// add opens a file, or finds out when to open it.
func (r *Reader) add(name string, alone bool) error {
	n, regular, err := size(name)
	if err != nil {
		return err
	}
	r.total += n
	r.unknown = r.unknown || !regular
	if alone || !regular {
		f, err := r.openFile(name, &r.tally, &r.read)
		if err != nil {
			return err
		}
		r.files = append(r.files, traffic.File{Name: name, Format: f.format})
		r.waiting = append(r.waiting, laterOn{name: name, opened: f}) // from here on the reader closes it
		return r.first(f)
	}
	f, err := r.openFile(name, &tally{}, new(atomic.Int64))
	if err != nil {
		return err
	}
	defer f.close()
	r.files = append(r.files, traffic.File{Name: name, Format: f.format})
	first, err := f.begins()
	r.waiting = append(r.waiting, laterOn{name: name, first: first})
	return err
}

// first reads the first requests of a file. If a strict reader finds an unreadable line, reading
// ends, and first returns no error.
func (r *Reader) first(f *file) error {
	err := f.first(r.o.Strict)
	if line := (*LineError)(nil); errors.As(err, &line) {
		r.fail(err)
		return nil
	}
	return err
}

// Next implements [traffic.Source].
func (r *Reader) Next(to *traffic.Request) bool {
	for r.arrange() {
		f := r.open[0]
		h := f.take()
		r.taken = true
		if h.At.Before(r.last) { // its file was opened too late
			r.tally.read--
			r.fail(r.tally.unread(errLate, f.name, h.line))
			continue
		}
		*to, r.last = h.Request, h.At
		return true
	}
	return false
}

// arrange moves the file with the next request to the front, and reports whether there is one.
func (r *Reader) arrange() bool {
	if r.taken {
		r.taken = false
		if !r.holds(r.open[0]) {
			r.open = slices.Delete(r.open, 0, 1)
		}
		r.sink()
	}
	for n := len(r.waiting); n > 0 && r.err == nil; n-- {
		w := r.waiting[n-1]
		if len(r.open) > 0 && w.first.After(r.open[0].at()) {
			break
		}
		r.waiting = r.waiting[:n-1]
		if f := r.start(w); f != nil && r.holds(f) {
			r.open = slices.Insert(r.open, 0, f)
			r.sink()
		}
	}
	return r.err == nil && len(r.open) > 0
}

// holds reports whether the file has another request. Otherwise it closes the file.
func (r *Reader) holds(f *file) bool {
	err := f.fill(r.o.Strict)
	if err != nil {
		r.fail(err)
	}
	if err != nil || len(f.held) == 0 {
		f.close()
		return false
	}
	return true
}

// sink moves the first file to its place in the order.
func (r *Reader) sink() {
	for i := 1; i < len(r.open) && r.open[i].at().Before(r.open[i-1].at()); i++ {
		r.open[i-1], r.open[i] = r.open[i], r.open[i-1]
	}
}

// start opens a file. It returns nil if that fails.
func (r *Reader) start(w laterOn) *file {
	if w.opened != nil {
		return w.opened
	}
	f, err := r.openFile(w.name, &r.tally, &r.read)
	if err != nil {
		r.fail(r.tally.unread(errReading, w.name, 1))
		return nil
	}
	if err := r.first(f); err != nil {
		r.err = err
	}
	if r.err != nil {
		f.close()
		return nil
	}
	return f
}

// fail ends reading if the reader is strict.
func (r *Reader) fail(err error) {
	if r.o.Strict {
		r.err = fmt.Errorf("stopped at the first unreadable line: %w", err)
	}
}

// Answer implements [traffic.Source]. A log ignores answers.
func (r *Reader) Answer(*traffic.Request, traffic.Answer) {}

// Err implements [traffic.Source]. It wraps a *[LineError] if [Options].Strict is set; otherwise
// unreadable lines are only counted. Without Strict there is an error only if one of several files
// turns out to have its newest requests first.
func (r *Reader) Err() error { return r.err }

// Lines returns the logs, and the counts of the lines read so far.
func (r *Reader) Lines() traffic.Lines {
	all := r.tally.lines()
	all.Files = r.files
	return all
}

// Progress returns how many bytes of the files were read, as stored, and their total; 0 if the
// total is unknown. It may be called at any time.
func (r *Reader) Progress() (read, total int64) {
	if r.unknown {
		return r.read.Load(), 0
	}
	return r.read.Load(), r.total
}

// Close closes the files. It may be called more than once.
func (r *Reader) Close() {
	for _, f := range r.open {
		f.close()
	}
	for _, w := range r.waiting {
		if w.opened != nil {
			w.opened.close()
		}
	}
	r.open, r.waiting, r.taken = nil, nil, false
}
