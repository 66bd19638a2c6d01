package page_test

import (
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/page"
)

func TestCells(t *testing.T) {
	t.Parallel()
	all := page.Parse(`poisson at 1.00x, clients: 1 (ignore)

RATE   ALGORITHM  WRONG
0.50x  sliding    0.01 %
1.00x  sliding-2  12.50 %

Requests and tokens of all clients; AT MOST in any 1s:

SEED  ALGORITHM  REQUESTS/S  AT MOST  TOKENS/S  SHARE
1     sliding    1.67        11       1.57      0.002 %
2     sliding    1.67        11       1.59      0.004 %

The same without limits:

SEED  ALGORITHM  REQUESTS/S  AT MOST  TOKENS/S  SHARE
1     sliding    1.67        11       1.61      0 %
`)
	check.Equal(t, "tables", len(all), 3)
	for _, tc := range []struct {
		title, column string
		row           []string
		want          string
		number        float64
	}{
		{"", "WRONG", []string{"1.00x", "sliding-2"}, "12.50 %", 12.5},
		{"poisson", "RATE", []string{"0.50x"}, "0.50x", 0.5},
		{"", "TOKENS/S", []string{"2", "sliding"}, "1.59", 1.59},
		{"without limits", "TOKENS/S", []string{"1"}, "1.61", 1.61},
		{"Requests", "SHARE", []string{"*", "sliding"}, "0.003 %", 0.003},
	} {
		got, err := all.Cell(tc.title, tc.column, tc.row...)
		check.OK(t, err)
		number, err := page.Figure(got)
		check.OK(t, err)
		check.Equal(t, tc.column, got, tc.want)
		check.Equal(t, tc.column, number, tc.number)
	}
	for _, tc := range [][]string{{"", "WRONG", "fixed"}, {"", "NONE", "1"}, {"", "TOKENS/S", "3"}, {"nothing", "WRONG", "0.50x"}} {
		if got, err := all.Cell(tc[0], tc[1], tc[2:]...); err == nil {
			t.Errorf("%v: %s", tc, got)
		}
	}
}

// TestTable: an empty cell does not move the cells after it.
func TestTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"what", "for", "number"}, {"all commands", "", "117"}}
	text := page.Table(rows)
	check.Equal(t, "text", text, "what          for  number\nall commands  -    117\n")
	cell, err := page.Parse(text).Cell("", "number", "all commands", "-")
	check.OK(t, err)
	check.Equal(t, "cell", cell, "117")
}
