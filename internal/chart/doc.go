// Package chart draws charts with gonum.org/v1/plot, all in one look: lines, steps, areas and bars, over
// time, numbers or names, on linear or logarithmic axes. It writes PNG, SVG and, for pages, an SVG element in
// the colours of the page. The same chart gives the same bytes.
//
//	c := chart.Chart{
//		Title:  "Denied",
//		X:      chart.Axis{Scale: chart.Time},
//		Y:      chart.Axis{Label: "requests/s"},
//		Series: []chart.Series{{Name: "shop", Points: points}, {Name: "limit", Points: level, Dash: chart.Dashed}},
//	}
//	err := c.Write("denied.svg")
//
// It only draws: it reads no data, and does not depend on the meaning of a chart.
package chart
