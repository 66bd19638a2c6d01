package ratelimit

import (
	"strings"
	"time"
)

// Trial is a candidate that applies to a client: it has its own limits and is never enforced.
type Trial struct {
	// ClientID replaces the client's ID in the candidate's keys. It contains a space, so it cannot
	// be the client_id of another client.
	ClientID  string
	Effective *Effective
	// User, Client, Total and Source say which lists are tried.
	User, Client, Total, Source bool
	// OverLimit, Waits and Ban say which settings for requests over the limits are tried. The
	// others are as in force: see Over.
	OverLimit, Waits, Ban bool
	// Since is when the trial of these limits began. It identifies the candidate: counts start over
	// when it changes.
	Since time.Time
}

// CandidateID returns the ID for counting a client's requests against its candidate.
func CandidateID(clientID string) string { return candidatePrefix + clientID }

const candidatePrefix = "candidate "

// CandidateOf is the inverse of [CandidateID]: it returns the client of a key, and whether the key
// belongs to its candidate.
func CandidateOf(keyID string) (clientID string, candidate bool) {
	return strings.CutPrefix(keyID, candidatePrefix)
}

// Of returns the key and the limits for trying a request of a user, or of the client itself if
// username is empty. It returns false if no tried list applies. For a user with an override only
// totals and limits of a source apply, because overrides do not replace them.
func (t *Trial) Of(username string, overridden bool) (Key, *Effective, bool) {
	k := Key{ClientID: t.ClientID, Username: username}
	switch {
	case !overridden && (username == "" && t.Client || username != "" && t.User):
		return k, t.Effective, true
	case t.Total || t.Source:
		return k, t.Effective.Only(false, true, true), true
	}
	return k, nil, false
}

// Over returns the tried limits with the settings for requests over them: the candidate's, or the
// ones in force if the candidate does not set them.
func (t *Trial) Over(live, tried *Effective) *Effective {
	e := *tried
	if !t.OverLimit {
		e.OverLimit = live.OverLimit
	}
	if !t.Waits {
		e.Wait = live.Wait
	}
	if !t.Ban {
		e.Ban = live.Ban
	}
	return &e
}
