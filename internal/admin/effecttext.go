package admin

import (
	"fmt"
	"strings"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/limiter/activity"
)

// named is how many clients the summary lists at most.
const named = 10

// summarize describes the effect of the change in sentences.
func (e *effect) summarize(now time.Time) string {
	switch {
	case !e.Widens:
		return "This change denies no request that would pass without it."
	case !e.normally:
		return "This change denies more requests while the store takes no counts, and only then."
	}
	text := e.figures("this change would have denied", now)
	if e.outage {
		text += " While the store takes no counts, this change denies more requests."
	}
	return text
}

// figures returns the sentences about the clients that are hit. what is their subject and verb.
func (e *effect) figures(what string, now time.Time) string {
	var b strings.Builder
	denied, atLeast, clients := fmt.Sprintf("requests of %d", len(e.Hit)), "", "clients"
	if len(e.Hit) == 0 {
		denied = "no request"
	}
	if e.Incomplete {
		atLeast = "at least "
	}
	if e.Clients == 1 {
		clients = "client"
	}
	fmt.Fprintf(&b, "In the last 10 minutes, %s %s of %s%d active %s",
		what, denied, atLeast, e.Clients, clients)
	list(&b, ": ", e.Hit, hitText)
	b.WriteString(".")
	if n := len(e.Unknown); n > 0 {
		fmt.Fprintf(&b, " It is unknown for %d", n)
		list(&b, ": ", e.Unknown, unknownText)
		b.WriteString(".")
	}
	// The oldest half minute is always partly forgotten.
	if age := now.Sub(e.Since); age < activity.Window-time.Minute {
		fmt.Fprintf(&b, " The figures are complete for the last %s only.", duration(age))
	}
	return b.String()
}

// list appends the first few items.
func list[T any](b *strings.Builder, intro string, items []T, text func(T) string) {
	for i, item := range items[:min(named, len(items))] {
		if i > 0 {
			intro = ", "
		}
		b.WriteString(intro + text(item))
	}
	if more := len(items) - named; more > 0 {
		fmt.Fprintf(b, " and %d more", more)
	}
}

// longestName is the maximum length of a client_id in the summary, because a gateway accepts names
// of up to 255 bytes from anyone.
const longestName = 64

// short truncates a client_id for the summary.
func short(clientID string) string {
	if len(clientID) <= longestName {
		return clientID
	}
	return strings.ToValidUTF8(clientID[:longestName], "") + "…"
}

// hitText returns the client and how many of its requests would have been denied.
func hitText(h adminapi.Hit) string {
	switch {
	case h.AtLeast:
		return fmt.Sprintf("%s (at least %d)", short(h.ClientID), h.Requests)
	case h.Requests == 1:
		return short(h.ClientID) + " (1 request)"
	}
	return fmt.Sprintf("%s (%d requests)", short(h.ClientID), h.Requests)
}

// unknownText returns the client and the reason.
func unknownText(u adminapi.Unknown) string { return short(u.ClientID) + " (" + u.Why + ")" }

// duration formats a duration in words: 2 minutes.
func duration(d time.Duration) string {
	n, unit := int(d.Round(time.Minute)/time.Minute), "minute"
	if d < time.Minute {
		n, unit = max(int(d/time.Second), 1), "second"
	}
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}
