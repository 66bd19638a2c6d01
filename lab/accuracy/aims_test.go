package accuracy

import (
	"fmt"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/page"
)

// aim is a figure that was aimed at: the most that a share may be, in percent.
type aim struct {
	what            string
	most            float64
	section, column string
	row             []string
}

var aims = []aim{
	{"Poisson, at the limit of 100 a minute, one frame: wrong", 0.01, "load-100", "WRONG", []string{"1.00x", "sliding"}},
	{"the same, two frames", 0.01, "load-100", "WRONG", []string{"1.00x", "sliding-2"}},
	{"Poisson, at the limit of 100 a minute, one frame: off by more than 15 % of the limit", 0.01, "poisson", "FAR", []string{"sliding"}},
	{"the same, two frames", 0.01, "poisson", "FAR", []string{"sliding-2"}},
	{"Poisson, at 0.65 of 100 a minute, one frame: wrong", 0.01, "load-100", "WRONG", []string{"0.65x", "sliding"}},
	{"at 0.70 of 100 a minute", 0.01, "load-100", "WRONG", []string{"0.70x", "sliding"}},
	{"Poisson, at 0.85 of 1000 a minute, one frame: wrong", 0.01, "load-1000", "WRONG", []string{"0.85x", "sliding"}},
	{"at 0.90 of 1000 a minute", 0.01, "load-1000", "WRONG", []string{"0.90x", "sliding"}},
	{"the mix of sources, one frame, mean of four seeds: wrong", 0.003, "mix", "WRONG", []string{"sliding"}},
	{"the same, two frames", 0.003, "mix", "WRONG", []string{"sliding-2"}},
}

// aims returns what was aimed at, and what is.
func (p printed) aims(t *testing.T) string {
	t.Helper()
	var rows [][]string
	for _, a := range aims {
		cell := p.cell(t, a.section, a.column, a.row...)
		is, err := figure(cell)
		check.OK(t, err)
		verdict := "met"
		if is > a.most {
			verdict = "**missed**"
		}
		rows = append(rows, []string{a.what, fmt.Sprintf("at most %v %%", a.most), cell, verdict})
	}
	return page.Markdown([]string{"measure", "goal", "result", ""}, rows)
}

// loads returns the share of wrong estimates by load.
func (p printed) loads(t *testing.T) string {
	t.Helper()
	heads, rows := []string{"load, in limits"}, make([][]string, len(loads))
	for _, limit := range []string{"100", "1000"} {
		for _, name := range frames(1, 2) {
			heads = append(heads, limit+" a minute, "+name)
		}
	}
	for i, x := range loads {
		rows[i] = []string{fmt.Sprintf("%.2f", x)}
		for _, limit := range []string{"100", "1000"} {
			for _, name := range frames(1, 2) {
				rows[i] = append(rows[i], p.cell(t, "load-"+limit, "WRONG", timesLimit(x), name))
			}
		}
	}
	return page.Markdown(heads, rows)
}
