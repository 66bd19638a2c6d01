package admin

import (
	"fmt"
	"strconv"
	"time"

	"oauth-server/internal/ratelimit"
)

// limitDoc is a limit as the API shows it.
type limitDoc struct {
	Name      string              `json:"name"`
	Requests  int64               `json:"requests"`
	Window    string              `json:"window"`
	Frames    int                 `json:"frames"`
	Algorithm ratelimit.Algorithm `json:"algorithm"`
	SoftRatio float64             `json:"soft_ratio"`
	OnOutage  ratelimit.OnOutage  `json:"on_outage"`
}

func showLimit(l ratelimit.Limit) limitDoc {
	return limitDoc{l.Name, l.Requests, showWindow(l.Window), l.Frames, l.Algorithm, l.SoftRatio, l.OnOutage}
}

// showLimits keeps nil: no list is not an empty one.
func showLimits(limits []ratelimit.Limit) []limitDoc {
	if limits == nil {
		return nil
	}
	out := make([]limitDoc, len(limits))
	for i, l := range limits {
		out[i] = showLimit(l)
	}
	return out
}

// showWindow writes a window as the configuration file does: 60s and 1s, and
// whole hours or minutes beyond.
func showWindow(d time.Duration) string {
	switch {
	case d > time.Minute && d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d > time.Minute && d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	case d%time.Second == 0:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	}
	return d.String()
}

// readLimits reads a list of limits. What a limit leaves out is that of
// [ratelimit.DefaultLimit].
func readLimits(f *fields, name string) []ratelimit.Limit {
	items, set := f.list(name)
	if !set {
		return nil
	}
	if len(items) == 0 {
		f.fail(name, "needs at least one limit; leave it out, or set it to null, to have none of its own")
	}
	if len(items) > ratelimit.MaxLimits {
		f.fail(name, "%d limits are more than %d", len(items), ratelimit.MaxLimits)
		return nil
	}
	out := make([]ratelimit.Limit, len(items))
	for i, item := range items {
		out[i] = readLimit(fieldsOf(item, fmt.Sprintf("%s[%d]", f.at(name), i), f.errors))
	}
	return out
}

func readLimit(f *fields) ratelimit.Limit {
	l := ratelimit.DefaultLimit()
	if v, ok := f.text("name"); ok {
		l.Name = v
	}
	if v, ok := f.integer("requests"); ok {
		l.Requests = v
	}
	if v, ok := f.duration("window"); ok {
		l.Window = v
	}
	if v, ok := f.integer("frames"); ok {
		l.Frames = int(max(min(v, ratelimit.MaxFrames+1), -1)) // validation names the range
	}
	if v, ok := f.text("algorithm"); ok {
		l.Algorithm = ratelimit.Algorithm(shorten(v))
	}
	if v, ok := f.number("soft_ratio"); ok {
		l.SoftRatio = v
	}
	if v, ok := f.text("on_outage"); ok {
		l.OnOutage = ratelimit.OnOutage(shorten(v))
	}
	f.end()
	return l
}
