package report

import (
	"fmt"
	"strconv"

	"oauth-server/internal/chart"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
)

// whatIf is the comparison of limits.
type whatIf struct {
	Chart *picture
	Table *table
}

func whatIfOf(all []simulate.WhatIf) (*whatIf, error) {
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // nothing was compared
	}
	t := &table{Caption: "What if these were the limits of every client that has none of its own", Columns: []column{
		{Name: "Limit"},
		{Name: "Clients hit", Number: true},
		{Name: "Users hit", Number: true},
		{Name: "Requests refused", Number: true},
		{Name: "Share of requests", Number: true},
	}}
	for i := range all {
		w := &all[i]
		users := number(w.UsersHit)
		users.Text = about(w.UsersHit, w.UsersEstimated)
		limit := text(w.Limit)
		if w.Found {
			limit.Text += " (found)"
		}
		t.Rows = append(t.Rows, row{Cells: []cell{
			limit, number(w.ClientsHit), users, number(w.Refused()), part(w.RefusedShare),
		}})
	}
	p, err := whatIfDiagram(all).picture()
	return &whatIf{Chart: p, Table: t}, err
}

func whatIfChart(all []simulate.WhatIf) *chart.Chart { return whatIfDiagram(all).chart }

func whatIfDiagram(all []simulate.WhatIf) *diagram {
	d := &diagram{reads: points, chart: &chart.Chart{
		Title: "What if", Subtitle: "what each limit would refuse", Y: chart.Axis{Label: "%"},
	}}
	clients, requests := make([]chart.Point, len(all)), make([]chart.Point, len(all))
	for i := range all {
		w := &all[i]
		d.chart.X.Names = append(d.chart.X.Names, printable(w.Limit))
		hit := share(uint64(w.ClientsHit), uint64(w.ClientCount)) //nolint:gosec // G115: not negative
		clients[i] = chart.Point{X: float64(i), Y: 100 * hit}
		requests[i] = chart.Point{X: float64(i), Y: 100 * w.RefusedShare}
	}
	d.add(chart.Series{Name: "clients hit", Kind: chart.Bar, Points: clients}, blue)
	d.add(chart.Series{Name: "requests refused", Kind: chart.Bar, Points: requests}, red)
	d.tabulate("Limit", func(x float64) string { return d.chart.X.Names[int(x)] }, func(y float64) cell { return part(y / 100) })
	return d
}

// target is a limit to look for.
type target struct {
	Title, Sentence, Stability string
	Curve                      *picture
	Outstanding, Days          *table
}

func targetOf(t *simulate.Target) (*target, error) {
	v := &target{
		Title: fmt.Sprintf("Lowest limit that leaves %s of %s untouched: %s", ExactPercent(t.Share), t.Of, printable(t.Limit)),
		Sentence: fmt.Sprintf("It leaves %s of %s %s untouched, %s.",
			count(t.Untouched), count(t.Count), t.Of, Percent(share(t.Untouched, t.Count))),
		Stability: stability(t),
	}
	if len(t.Outstanding) > 0 {
		v.Outstanding = &table{Caption: "Clients that it would refuse requests of, those that need most first", Sortable: true, Columns: []column{
			{Name: "Client"}, {Name: "Needs at least", Number: true, Sorted: "descending"}, {Name: "Requests", Number: true},
		}}
		for _, o := range t.Outstanding {
			v.Outstanding.Rows = append(v.Outstanding.Rows, row{Cells: []cell{text(o.ClientID), number(o.Needs), number(o.Requests)}})
		}
		if t.MoreOutstanding > 0 {
			v.Outstanding.More = counted(t.MoreOutstanding, "client is", "clients are") + " left out here."
		}
	}
	if len(t.Days) > 0 {
		v.Days = &table{Caption: "The answer without one day", Columns: []column{{Name: "Without"}, {Name: "Limit", Number: true}}}
		for _, d := range t.Days {
			v.Days.Rows = append(v.Days.Rows, row{Cells: []cell{text(d.Without), number(d.Requests)}})
		}
	}
	if len(t.Curve) == 0 {
		return v, nil
	}
	var err error
	v.Curve, err = curveDiagram(t).picture()
	return v, err
}

// stability describes how much the answer depends on single days.
func stability(t *simulate.Target) string {
	switch {
	case len(t.Days) == 0:
		return "The log has one day, so it does not say how stable the answer is: replay more days."
	case t.Min == t.Max && t.Min != t.Requests:
		return fmt.Sprintf("Whichever of the %d days is left out, the answer is %s.", len(t.Days), count(t.Min))
	case t.Min == t.Max:
		return fmt.Sprintf("It is stable: the answer is %s, whichever of the %d days is left out.", count(t.Min), len(t.Days))
	}
	return fmt.Sprintf("If one of the %d days is left out, the answer is between %s and %s.", len(t.Days), count(t.Min), count(t.Max))
}

func curve(t *simulate.Target) *chart.Chart { return curveDiagram(t).chart }

func curveDiagram(t *simulate.Target) *diagram {
	per := "window"
	if t.Found.Window > 0 {
		per = ratelimit.FormatWindow(t.Found.Window)
	}
	d := &diagram{reads: steps, chart: &chart.Chart{
		Title:    fmt.Sprintf("Untouched %s by limit", t.Of),
		Subtitle: fmt.Sprintf("the lowest limit that leaves %s untouched is %s", ExactPercent(t.Share), printable(t.Limit)),
		X:        chart.Axis{Label: "limit, requests per " + per, Scale: chart.Log},
		Y:        chart.Axis{Label: "% untouched", Max: 100},
	}}
	untouched := make([]chart.Point, len(t.Curve))
	for i, p := range t.Curve {
		untouched[i] = chart.Point{X: float64(p.Requests), Y: 100 * share(p.Untouched, t.Count)}
	}
	d.chart.Y.Min = below(append([]chart.Point{{Y: 100 * t.Share}}, untouched...))
	d.add(chart.Series{Name: "untouched", Step: true, Dots: len(untouched) <= 40, Points: untouched}, blue)
	d.tabulate("Limit", func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }, func(y float64) cell { return part(y / 100) })
	first, last, found := untouched[0].X, untouched[len(untouched)-1].X, float64(t.Requests)
	d.add(chart.Series{
		Name: ExactPercent(t.Share) + " asked for", Dash: chart.Dashed,
		Points: []chart.Point{{X: first, Y: 100 * t.Share}, {X: last, Y: 100 * t.Share}},
	}, red)
	d.add(chart.Series{
		Name: printable(t.Limit) + " found", Dash: chart.Dotted,
		Points: []chart.Point{{X: found, Y: d.chart.Y.Min}, {X: found, Y: 100}},
	}, green)
	return d
}
