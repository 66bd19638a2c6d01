package admin

import (
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
