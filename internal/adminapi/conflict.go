package adminapi

import (
	"time"

	"oauth-server/internal/clientcfg"
)

// AgeHeader is in an answer that is not known to show the newest state, because that could not be read from
// the store: how many seconds ago it was the newest (RFC 9111 5.1).
const AgeHeader = "Age"

// Conflict is why a change was refused: what others have changed since the state that it is based on.
type Conflict struct {
	Target string    `json:"target"` // as in the trail
	Now    time.Time `json:"now"`    // by the clock of the server, to compare with the times of the changes
	// Changes are those entries of the trail, the newest first: at most ten. If there is none, the
	// configuration file is another one than that of the answer that was read.
	Changes []AuditEntry `json:"changes"`
}

// Who names who made a change.
func Who(a *clientcfg.Actor) string {
	switch {
	case a.Store != "":
		return a.Store + " (store)"
	case a.Username != "":
		return a.Username + " (" + a.ClientID + ")"
	}
	return a.ClientID
}
