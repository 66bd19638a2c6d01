package adminapi

import "oauth-server/internal/ratelimit"

// Waits describes how requests over the limit wait in the queue.
type Waits struct {
	// How long a request over the limit waits at most, such as 2s: at most 10s, and not longer
	// than the longest window of each list. 0s: no waiting. Not for a trusted client, nor with
	// reuse.
	MaxWait *ratelimit.Duration `json:"max_wait,omitempty"`
	// how many requests of one key wait at once, with max_wait; default 10
	MaxWaiting *int `json:"max_waiting,omitempty" schema:"minimum=1,maximum=1000"`
}

// effectiveWaits returns the values in force; empty if no request waits.
func effectiveWaits(w ratelimit.Wait) Waits {
	if w.Longest == 0 {
		return Waits{}
	}
	return Waits{new(ratelimit.Duration(w.Longest)), &w.AtOnce}
}
