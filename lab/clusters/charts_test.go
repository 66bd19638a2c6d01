package clusters

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"oauth-server/lab/chart"
)

// maxClusters is the most clusters that are drawn over time.
const maxClusters = 6

// writeCharts writes charts of clusters to a file: if there are few, overshoot and commands over time, and if there
// are several numbers of instances, how overshoot and costs grow with it.
func writeCharts(path string, all []cell) error {
	var charts []*chart.Chart
	if len(all) <= maxClusters {
		charts = clustersOverTime(all)
	}
	return chart.Write(path, append(charts, growth(all)...)...)
}

func clustersOverTime(all []cell) []*chart.Chart {
	over := &chart.Chart{
		Title: "Overshoot", Subtitle: "estimate of one counter for all admitted requests, above the limit; maximum per interval",
		X: chart.Axis{Label: "minutes"}, Y: chart.Axis{Label: "% of the limit"},
	}
	commands := &chart.Chart{
		Title: "Database commands", Subtitle: "all instances together",
		X: chart.Axis{Label: "minutes"}, Y: chart.Axis{Label: "commands/s"},
	}
	for _, one := range all {
		name := fmt.Sprintf("%d instances, %s", one.result.instances, one.flush.rule())
		var percents, rates []chart.Point
		last := time.Duration(0)
		for _, p := range one.result.points {
			if p.at > last {
				percents = append(percents, chart.Point{X: p.at.Minutes(), Y: 100 * max(0, p.estimate-1)})
				rates = append(rates, chart.Point{X: p.at.Minutes(), Y: float64(p.commands) / (p.at - last).Seconds()})
			}
			last = p.at
		}
		over.Series = append(over.Series, chart.Series{Name: name, Points: percents})
		commands.Series = append(commands.Series, chart.Series{Name: name, Points: rates})
	}
	return []*chart.Chart{over, commands}
}

// growth draws overshoot and costs over the number of instances, if there are several.
func growth(all []cell) []*chart.Chart {
	instances := chart.Axis{Label: "instances", Kind: chart.Log}
	over := &chart.Chart{
		Title: "Overshoot by number of instances", Subtitle: "worst window in which a key was offered at least its limit",
		X: instances, Y: chart.Axis{Label: "% of the limit"},
	}
	byInstances(over, "overshoot", all, func(r *result) float64 { return 100 * max(0, r.windows.worst-1, r.windows.first-1) })
	cost := &chart.Chart{Title: "Cost by number of instances", X: instances, Y: chart.Axis{Label: "per second", Kind: chart.Log}}
	byInstances(cost, "commands, all instances", all, func(r *result) float64 { return r.perSecond(r.cost.commands) })
	byInstances(cost, "commands, each instance", all, func(r *result) float64 { return r.perSecond(r.cost.commands) / float64(r.instances) })
	byInstances(cost, "KiB, all instances", all, func(r *result) float64 { return r.perSecond(r.cost.bytes) / 1024 })
	if len(cost.Series[0].Points) < 2 {
		return nil
	}
	return []*chart.Chart{over, cost}
}

// byInstances adds a value over the number of instances, a series for each flush.
func byInstances(c *chart.Chart, what string, all []cell, value func(r *result) float64) {
	numbers := map[string]int{} // of series, by flush
	for _, one := range all {
		flush := one.flush.String()
		i, known := numbers[flush]
		if !known {
			i = len(c.Series)
			numbers[flush] = i
			c.Series = append(c.Series, chart.Series{Name: what + ", " + one.flush.rule(), Dots: true})
		}
		c.Series[i].Points = append(c.Series[i].Points, chart.Point{X: float64(one.result.instances), Y: value(one.result)})
	}
	for i := range c.Series {
		slices.SortStableFunc(c.Series[i].Points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
	}
}
