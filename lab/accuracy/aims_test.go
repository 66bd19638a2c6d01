package accuracy

import (
	"fmt"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

// aim is a figure that was aimed at: the most that a share may be, in percent.
type aim struct {
	what            string
	most            float64
	section, column string
	row             []string
}

var aims = []aim{
	{"Poisson, at the limit of 100 a minute, one frame: wrong", 0.01, "load", "WRONG", []string{"1.00x", "sliding"}},
	{"the same, two frames", 0.01, "load", "WRONG", []string{"1.00x", "sliding-2"}},
	{"Poisson, at the limit of 100 a minute, one frame: off by more than 15 % of the limit", 0.01, "poisson", "FAR", []string{"sliding"}},
	{"the same, two frames", 0.01, "poisson", "FAR", []string{"sliding-2"}},
	{"Poisson, at 0.65 of 100 a minute, one frame: wrong", 0.01, "load", "WRONG", []string{"0.65x", "sliding"}},
	{"at 0.70 of 100 a minute", 0.01, "load", "WRONG", []string{"0.70x", "sliding"}},
	{"Poisson, at 0.85 of 1000 a minute, one frame: wrong", 0.01, "load-1000", "WRONG", []string{"0.85x", "sliding"}},
	{"at 0.90 of 1000 a minute", 0.01, "load-1000", "WRONG", []string{"0.90x", "sliding"}},
	{"the mix of sources, one frame, mean of four seeds: wrong", 0.003, "mix", "WRONG", []string{"sliding"}},
	{"the same, two frames", 0.003, "mix", "WRONG", []string{"sliding-2"}},
	{"the first of these seeds alone, one frame: wrong", 0.003, "mix", "WRONG", []string{"1", "sliding"}},
	{"the same, two frames", 0.003, "mix", "WRONG", []string{"1", "sliding-2"}},
	{"the mix of sources, the limit half as high, one frame: wrong", 0.003, "mix-rates", "WRONG", []string{"0.040x", "sliding"}},
}

// aims returns what was aimed at, and what is.
func (p printed) aims(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| measure | goal | result | |\n|---|---|---|---|\n")
	for _, a := range aims {
		cell := p.cell(t, a.section, a.column, a.row...)
		is, err := figure(cell)
		check.OK(t, err)
		verdict := "met"
		if is > a.most {
			verdict = "**missed**"
		}
		fmt.Fprintf(&b, "| %s | at most %v %% | %s | %s |\n", a.what, a.most, cell, verdict)
	}
	return b.String()
}
