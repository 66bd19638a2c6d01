package adminapi

import (
	"time"

	"oauth-server/internal/clientcfg"
)

// AgeHeader is set on an answer that may not show the newest state, because the server could not
// read it from the store. Its value is the number of seconds since the answer was known to be the
// newest state (RFC 9111 5.1).
const AgeHeader = "Age"

// Conflict is the reason for a refused change: the changes made by others since the state that it
// is based on.
type Conflict struct {
	Target string    `json:"target"` // as in the trail
	Now    time.Time `json:"now"`    // by the server's clock, for comparison with the times of the changes
	// The audit entries of those changes, newest first: at most ten. If it is empty, the
	// configuration file differs from the file behind the earlier answer.
	Changes []AuditEntry `json:"changes" schema:"maxItems=10"`
}

// Who names the actor of a change.
func Who(a *clientcfg.Actor) string {
	switch {
	case a.Store != "":
		return a.Store + " (store)"
	case a.Username != "":
		return a.Username + " (" + a.ClientID + ")"
	}
	return a.ClientID
}
