package events

import "fmt"

// first fills for the first time. The error is a *[LineError] if it is strict, or that of a log that is backwards.
func (f *file) first(strict bool) error {
	if err := f.fill(strict); err != nil || f.done || !f.newestFirst() {
		return err
	}
	if err := f.fillTo(f.depth+1, strict); err != nil || f.done {
		return err // all of them fit in
	}
	return f.backwards()
}

// newestFirst reports whether all of the oldest quarter of the requests stand behind all of the newest one.
func (f *file) newestFirst() bool {
	quarter := len(f.held) / 4
	oldest, newest := f.held[:quarter], f.held[len(f.held)-quarter:]
	first, last := oldest[0].nth, newest[0].nth
	for i := range quarter {
		first, last = min(first, oldest[i].nth), max(last, newest[i].nth)
	}
	return first > last
}

// backwards is the error of a log that has its newest requests first, and more of them than can be put in order: all
// the others would be lost.
func (f *file) backwards() error {
	how := "tac FILE"
	switch member := f.in.doc.member; {
	case member == "data.result" || member == "streams" || member == "values":
		how = "jq -sc '[.. | objects | .values // empty | .[]] | sort[]' FILE"
	case member != "":
		how = "jq -sc 'map(." + member + "[]) | reverse[]' FILE"
	case f.in.doc.on:
		how = "jq -sc 'flatten(1) | reverse[]' FILE"
	case f.format == CSV:
		how = "(head -n 1 FILE; tail -n +2 FILE | tac)"
	}
	return fmt.Errorf("%s has its newest requests first, and more than the %d that can be put in order: reverse it: %s | oauth-server simulate -",
		f.name, f.depth, how)
}
