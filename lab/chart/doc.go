// Package chart draws the charts of the documentation with gonum.org/v1/plot: lines, steps and areas, over
// time or numbers, on linear or logarithmic axes. It writes PNG and SVG. The same chart gives the same bytes.
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
