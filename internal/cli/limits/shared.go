package limits

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/limiter"
	"oauth-server/internal/ratelimit"
)

// sharedHeading is the heading of the column that showShared fills.
const sharedHeading = "SHARED LIMITS"

// showShared writes both lists with their names; empty if both lists are empty.
func showShared(total, source []adminapi.Limit) string {
	var parts []string
	if len(total) > 0 {
		parts = append(parts, "total "+syntax.ShowLimits(total))
	}
	if len(source) > 0 {
		parts = append(parts, "source "+syntax.ShowLimits(source))
	}
	return strings.Join(parts, "; ")
}

// withoutEmpty removes the showShared column if it is empty in every row.
func withoutEmpty(rows [][]string) [][]string {
	at := slices.Index(rows[0], sharedHeading)
	some := slices.ContainsFunc(rows[1:], func(row []string) bool { return row[at] != "" })
	for i, row := range rows {
		switch {
		case !some:
			rows[i] = slices.Delete(row, at, at+1)
		case row[0] != "": // not a continuation row
			row[at] = orNone(row[at])
		}
	}
	return rows
}

// resetFlags select the counts of a client to forget.
type resetFlags struct {
	user, source string
	total        bool
}

func (f *resetFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.user, "user", "", "reset only this user of the client")
	cmd.Flags().BoolVar(&f.total, "total", false, "reset only the client's total")
	cmd.Flags().StringVar(&f.source, "source", "", "reset only this source address")
}

// key returns the key of the counts to forget, nil for all counts of the client, and a description
// for people.
func (f *resetFlags) key(cmd *cobra.Command, clientID string) (k *ratelimit.Key, about string, err error) {
	client := ratelimit.Key{ClientID: clientID}
	one := func(set ratelimit.Key, text string) {
		if k != nil {
			err = command.Usagef("limits reset: --user, --total and --source cannot be used together: give one of them")
		}
		k, about = &set, text
	}
	if cmd.Flags().Changed("user") {
		one(ratelimit.Key{ClientID: clientID, Username: f.user}, f.user+" at "+clientID)
	}
	if f.total {
		one(client.Total(), clientID+"'s total")
	}
	if cmd.Flags().Changed("source") {
		address, wrong := limiter.ParseSource(f.source)
		if wrong != nil {
			return nil, "", command.Usagef("--source: %w", wrong)
		}
		one(client.Source(address), clientID+" from "+address)
	}
	if k == nil {
		about = clientID
	}
	return k, about, err
}

// sharedKey describes the username that a total or a source is counted under; empty for the name of
// a user.
func sharedKey(username string) string {
	k := ratelimit.Key{Username: username}
	switch address, isSource := k.SourceAddress(); {
	case isSource:
		return "(from " + address + ")"
	case k == k.Total():
		return "(all users)"
	}
	return ""
}
