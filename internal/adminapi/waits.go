package adminapi

import "oauth-server/internal/ratelimit"

// Waits describes how requests over the limit wait in the queue.
type Waits struct {
	MaxWait    string `json:"max_wait,omitempty"` // such as 2s; 0s: no waiting
	MaxWaiting int    `json:"max_waiting,omitempty"`
}

// ShowWaits returns a policy's values.
func ShowWaits(longest *ratelimit.MaxWait, atOnce *int) (w Waits) {
	if longest != nil {
		w.MaxWait = longest.String()
	}
	if atOnce != nil {
		w.MaxWaiting = *atOnce
	}
	return w
}

// effectiveWaits returns the values in force; empty if no request waits.
func effectiveWaits(w ratelimit.Wait) Waits {
	if w.Longest == 0 {
		return Waits{}
	}
	return Waits{MaxWait: ratelimit.MaxWait(w.Longest).String(), MaxWaiting: w.AtOnce}
}
