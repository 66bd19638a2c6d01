package adminapi

import "oauth-server/internal/ratelimit"

// Waits is how requests over the limit wait for their turn.
type Waits struct {
	MaxWait    string `json:"max_wait,omitempty"` // such as 2s; 0s: they do not
	MaxWaiting int    `json:"max_waiting,omitempty"`
}

// ShowWaits returns what a policy has.
func ShowWaits(longest *ratelimit.MaxWait, atOnce *int) (w Waits) {
	if longest != nil {
		w.MaxWait = longest.String()
	}
	if atOnce != nil {
		w.MaxWaiting = *atOnce
	}
	return w
}

// effectiveWaits returns what applies; nothing if no request waits.
func effectiveWaits(w ratelimit.Wait) Waits {
	if w.Longest == 0 {
		return Waits{}
	}
	return Waits{MaxWait: ratelimit.MaxWait(w.Longest).String(), MaxWaiting: w.AtOnce}
}
