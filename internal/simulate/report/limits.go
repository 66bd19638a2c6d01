package report

import (
	"fmt"
	"strconv"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/chart"
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
	d := &diagram{Reads: points, Title: "Limits compared", Subtitle: "clients hit and requests refused by each limit", y: chart.Axis{Label: "%"}}
	clients, requests := make([]chart.Point, len(all)), make([]chart.Point, len(all))
	for i := range all {
		w := &all[i]
		d.x.Names = append(d.x.Names, printable(w.Limit))
		hit := simulate.Share(uint64(w.ClientsHit), uint64(w.ClientCount)) //nolint:gosec // G115: not negative
		clients[i] = chart.Point{X: float64(i), Y: 100 * hit}
		requests[i] = chart.Point{X: float64(i), Y: 100 * w.RefusedShare}
	}
	d.add(series{Name: "clients hit", Series: chart.Series{Kind: chart.Bar, Points: clients}}, blue)
	d.add(series{Name: "requests refused", Series: chart.Series{Kind: chart.Bar, Points: requests}}, red)
	d.tabulate("Limit", func(x float64) string { return d.x.Names[int(x)] }, func(y float64) cell { return part(y / 100) })
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
			chart.Count(t.Untouched), chart.Count(t.Count), t.Of, Percent(simulate.Share(t.Untouched, t.Count))),
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
		return fmt.Sprintf("Whichever of the %d days is left out, the answer is %s.", len(t.Days), chart.Count(t.Min))
	case t.Min == t.Max:
		return fmt.Sprintf("It is stable: the answer is %s, whichever of the %d days is left out.", chart.Count(t.Min), len(t.Days))
	}
	return fmt.Sprintf("If one of the %d days is left out, the answer is between %s and %s.", len(t.Days), chart.Count(t.Min), chart.Count(t.Max))
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
		x:        chart.Axis{Label: "limit, requests per " + per, Kind: chart.Log},
		y:        chart.Axis{Label: "% untouched", Max: 100},
	}
	untouched := make([]chart.Point, len(t.Curve))
	for i, p := range t.Curve {
		untouched[i] = chart.Point{X: float64(p.Requests), Y: 100 * simulate.Share(p.Untouched, t.Count)}
	}
	d.y.Min = below(append([]chart.Point{{Y: 100 * t.Share}}, untouched...))
	d.add(series{Name: "untouched", Series: chart.Series{Step: true, Dots: len(untouched) <= 40, Points: untouched}}, blue)
	d.tabulate("Limit", func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }, func(y float64) cell { return part(y / 100) })
	first, last, found := untouched[0].X, untouched[len(untouched)-1].X, float64(t.Requests)
	d.add(series{
		Name: "target: " + ExactPercent(t.Share), Mark: true,
		Series: chart.Series{Dashes: "7 4", Points: []chart.Point{{X: first, Y: 100 * t.Share}, {X: last, Y: 100 * t.Share}}},
	}, red)
	d.add(series{
		Name: "found: " + printable(t.Limit), Mark: true,
		Series: chart.Series{Dashes: "2 2.5", Points: []chart.Point{{X: found, Y: d.y.Min}, {X: found, Y: 100}}},
	}, green)
	return d
}
