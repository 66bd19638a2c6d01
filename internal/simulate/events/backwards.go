package events

import (
	"fmt"
	"strings"
)

// first fills for the first time. The error is a *[LineError] if strict is set, or the error of
// backwards.
func (f *file) first(strict bool) error {
	if err := f.fill(strict); err != nil || f.done || !f.newestFirst() {
		return err
	}
	if err := f.fillTo(f.depth+1, strict); err != nil || f.done {
		return err // all requests fit into the buffer
	}
	return f.backwards()
}

// newestFirst reports whether the oldest quarter of the requests comes completely after the newest
// quarter.
func (f *file) newestFirst() bool {
	quarter := len(f.held) / 4
	oldest, newest := f.held[:quarter], f.held[len(f.held)-quarter:]
	first, last := oldest[0].nth, newest[0].nth
	for i := range quarter {
		first, last = min(first, oldest[i].nth), max(last, newest[i].nth)
	}
	return first > last
}

// backwards returns the error of a log that has its newest requests first, and too many requests to
// sort: all others would be lost.
func (f *file) backwards() error {
	how := "tac FILE"
	switch d := f.in.doc; {
	case d != nil && d.pairs:
		how = "jq -sc '[.. | objects | .values // empty | .[]] | sort[]' FILE"
	case d != nil && len(d.members) > 0:
		how = "jq -sc 'map(." + strings.Join(d.members, ".") + "[]) | reverse[]' FILE"
	case d != nil:
		how = "jq -sc 'flatten(1) | reverse[]' FILE"
	case f.format == CSV:
		how = "(head -n 1 FILE; tail -n +2 FILE | tac)"
	}
	return fmt.Errorf("%s has its newest requests first, more than the %d that can be sorted: reverse it: %s | oauth-server simulate -",
		f.name, f.depth, how)
}
