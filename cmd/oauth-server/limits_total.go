package main

import (
	"slices"

	"oauth-server/internal/adminapi"
)

// withTotal adds a row for the total below that of the limits of the client, if there is one.
func withTotal(total []adminapi.Limit, from string, rows ...[]string) [][]string {
	i := slices.IndexFunc(rows, func(row []string) bool { return row[0] == "client limits" })
	if len(total) == 0 || i < 0 {
		return rows
	}
	return slices.Insert(rows, i+1, []string{"total limits", showLimits(total), from})
}
