package report

import (
	"fmt"
	"strconv"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
)

// whatIf is the comparison of limits.
type whatIf struct {
	Chart *diagram
	Table *Table
}

// whatIfOf returns nil if nothing was compared.
func whatIfOf(all []simulate.WhatIf) *whatIf {
	if len(all) == 0 {
		return nil
	}
	return &whatIf{Chart: whatIfDiagram(all), Table: WhatIf(all)}
}

func whatIfDiagram(all []simulate.WhatIf) *diagram {
	d := &diagram{Reads: points, Title: "Limits compared", Subtitle: "clients hit and requests refused by each limit", yLabel: "%"}
	clients, requests := make([]point, len(all)), make([]point, len(all))
	for i := range all {
		w := &all[i]
		d.names = append(d.names, printable(w.Limit))
		hit := simulate.Share(uint64(w.ClientsHit), uint64(w.ClientCount)) //nolint:gosec // G115: not negative
		clients[i] = point{X: float64(i), Y: 100 * hit}
		requests[i] = point{X: float64(i), Y: 100 * w.RefusedShare}
	}
	d.add(series{Name: "clients hit", kind: bar, points: clients}, blue)
	d.add(series{Name: "requests refused", kind: bar, points: requests}, red)
	d.tabulate("Limit", func(x float64) string { return d.names[int(x)] }, func(y float64) cell { return part(y / 100) })
	return d
}

// target is a limit to look for.
type target struct {
	Title, Sentence, Stability string
	Curve                      *diagram
	Outstanding, Days          *Table
}

func targetOf(t *simulate.Target) *target {
	v := &target{
		Title: fmt.Sprintf("Lowest limit that leaves %s of %s untouched: %s", ExactPercent(t.Share), t.Of, printable(t.Limit)),
		Sentence: fmt.Sprintf("It leaves %s of %s %s untouched, %s.",
			count(t.Untouched), count(t.Count), t.Of, Percent(simulate.Share(t.Untouched, t.Count))),
		Stability: stability(t),
	}
	if len(t.Outstanding) > 0 {
		v.Outstanding = Outstanding(t, len(t.Outstanding))
	}
	if len(t.Days) > 0 {
		v.Days = &Table{Caption: "The answer with one day left out", Columns: []column{{Name: "Without"}, {Name: "Limit", Number: true}}}
		for _, d := range t.Days {
			v.Days.Rows = append(v.Days.Rows, row{Cells: []cell{text(d.Without), number(d.Requests)}})
		}
	}
	if len(t.Curve) > 0 {
		v.Curve = curveDiagram(t)
	}
	return v
}

// stability describes how much the answer depends on single days.
func stability(t *simulate.Target) string {
	switch {
	case len(t.Days) == 0:
		return "The log covers one day, which does not show how stable the answer is: replay more days."
	case t.Min == t.Max && t.Min != t.Requests:
		return fmt.Sprintf("Whichever of the %d days is left out, the answer is %s.", len(t.Days), count(t.Min))
	case t.Min == t.Max:
		return fmt.Sprintf("It is stable: the answer is %s, whichever of the %d days is left out.", count(t.Min), len(t.Days))
	}
	return fmt.Sprintf("If one of the %d days is left out, the answer is between %s and %s.", len(t.Days), count(t.Min), count(t.Max))
}

func curveDiagram(t *simulate.Target) *diagram {
	per := "window"
	if t.Found.Window > 0 {
		per = ratelimit.FormatWindow(t.Found.Window)
	}
	d := &diagram{
		Reads:    steps,
		Title:    fmt.Sprintf("Untouched %s by limit", t.Of),
		Subtitle: fmt.Sprintf("the lowest limit that leaves %s untouched is %s", ExactPercent(t.Share), printable(t.Limit)),
		xLabel:   "limit, requests per " + per, Log: true,
		yLabel: "% untouched", yMax: 100,
	}
	untouched := make([]point, len(t.Curve))
	for i, p := range t.Curve {
		untouched[i] = point{X: float64(p.Requests), Y: 100 * simulate.Share(p.Untouched, t.Count)}
	}
	d.yMin = below(append([]point{{Y: 100 * t.Share}}, untouched...))
	d.add(series{Name: "untouched", step: true, dots: len(untouched) <= 40, points: untouched}, blue)
	d.tabulate("Limit", func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }, func(y float64) cell { return part(y / 100) })
	first, last, found := untouched[0].X, untouched[len(untouched)-1].X, float64(t.Requests)
	d.add(series{
		Name: "target: " + ExactPercent(t.Share), Mark: true, dashes: "7 4",
		points: []point{{X: first, Y: 100 * t.Share}, {X: last, Y: 100 * t.Share}},
	}, red)
	d.add(series{
		Name: "found: " + printable(t.Limit), Mark: true, dashes: "2 2.5",
		points: []point{{X: found, Y: d.yMin}, {X: found, Y: 100}},
	}, green)
	return d
}
