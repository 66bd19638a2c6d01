package main

import (
	"fmt"

	"oauth-server/lab/page"
)

// goal is the most that a share was to be, in percent.
type goal struct {
	what            string
	most            float64
	section, column string
	row             []string
}

// wrongGoal is the goal for the share of wrong decisions.
const wrongGoal = 0.01

var goals = []goal{
	{"Poisson, at the limit of 100 a minute, one frame: wrong", wrongGoal, "load-100", "WRONG", []string{"1.00x", "sliding"}},
	{"the same, two frames", wrongGoal, "load-100", "WRONG", []string{"1.00x", "sliding-2"}},
	{"Poisson, at the limit of 100 a minute, one frame: off by more than 15 % of the limit", wrongGoal, "poisson", "FAR", []string{"sliding"}},
	{"the same, two frames", wrongGoal, "poisson", "FAR", []string{"sliding-2"}},
	{"Poisson, at 0.65 of 100 a minute, one frame: wrong", wrongGoal, "load-100", "WRONG", []string{"0.65x", "sliding"}},
	{"at 0.70 of 100 a minute", wrongGoal, "load-100", "WRONG", []string{"0.70x", "sliding"}},
	{"Poisson, at 0.85 of 1000 a minute, one frame: wrong", wrongGoal, "load-1000", "WRONG", []string{"0.85x", "sliding"}},
	{"at 0.90 of 1000 a minute", wrongGoal, "load-1000", "WRONG", []string{"0.90x", "sliding"}},
	{"the mix of sources, one frame, mean of four seeds: wrong", 0.003, "mix", "WRONG", []string{"*", "sliding"}},
	{"the same, two frames", 0.003, "mix", "WRONG", []string{"*", "sliding-2"}},
}

// goals returns the goals and the results, in plain text.
func (t *texts) goals() string {
	rows := [][]string{{"measure", "goal", "result", ""}}
	for _, g := range goals {
		cell := t.cell(accuracy, g.section, "", g.column, g.row...)
		verdict := "met"
		if t.number(cell) > g.most {
			verdict = "missed"
		}
		rows = append(rows, []string{g.what, fmt.Sprintf("at most %v %%", g.most), cell, verdict})
	}
	return page.Table(rows)
}
