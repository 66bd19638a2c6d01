package main

import (
	"fmt"
	"strings"

	"oauth-server/lab/page"
)

// published is a figure that others published, and the cell of the same measurement of ours.
type published struct {
	who, what, figure          string
	file, section, column, row string // empty row: several seeds
	on                         string // our traffic
}

const (
	cloudflare = "Cloudflare"
	criteo     = "Criteo"
	wso2       = "wso2 API Platform"
	databricks = "Databricks"
)

const (
	twice     = "four instances, offered twice the limit"
	fourTimes = "the same, offered four times the limit"
	// admitted is the column of clusters with the admitted requests, in parts of the limit.
	admitted = "MEAN"
)

// The figures that the page shows.
var (
	wrongDecisions = published{cloudflare, "requests wrongly allowed or limited", "0.003 %", accuracy, "mix", "WRONG", "sliding", "a mix of sources, one frame, mean of four seeds"}
	rateError      = published{cloudflare, "mean difference between real and estimated rate", "6 %", accuracy, "mix", "RATE ERROR", "sliding", "the same, one frame"}
	every50ms      = published{wso2, "gateways that synchronize through Redis every 50 ms", "13.1 % over", clusters, "cluster-2x", admitted, "plain:50ms", twice}
	every100ms     = published{databricks, "clients that report every 100 ms", "about 5 % over", clusters, "cluster-2x", admitted, "plain:100ms", twice}
	ourRule        = published{"this server", "its own rule", "", clusters, "cluster-2x", admitted, "1s", twice}
)

var publishedFigures = []published{
	wrongDecisions,
	{cloudflare, "the same", "0.003 %", accuracy, "mix", "WRONG", "sliding-2", "the same, two frames"},
	{cloudflare, "sources with wrong decisions, of 270,000", "3", accuracy, "mix", "KEYS", "sliding", "the same, one frame"},
	rateError,
	{criteo, "fixed window: maximum admitted", "2 limits", accuracy, "edge", "WORST WINDOW", "fixed", "bursts at a frame's edge"},
	{criteo, "fixed window against the perfect one", "a chart", accuracy, "wander", "RATE ERROR", "fixed", "a rate that wanders: the mean difference"},
	{criteo, "sliding window against the perfect one", "a chart", accuracy, "wander", "RATE ERROR", "sliding", "the same"},
	{criteo, "five windows of 15 s against the perfect one", "a chart", accuracy, "wander", "RATE ERROR", "sliding-4", "the same"},
	every50ms,
	{wso2, "the same", "13.1 % over", clusters, "cluster-4x", admitted, "plain:50ms", fourTimes},
	{wso2, "every 10 ms", "3.7 % over", clusters, "cluster-2x", admitted, "plain:10ms", twice},
	{wso2, "the same", "3.7 % over", clusters, "cluster-4x", admitted, "plain:10ms", fourTimes},
	every100ms,
	{databricks, "the same", "about 5 % over", clusters, "cluster-4x", admitted, "plain:100ms", fourTimes},
	ourRule,
	{"this server", "the same", "", clusters, "cluster-4x", admitted, "1s", fourTimes},
}

// ours returns our cell.
func (p *published) ours(t *texts) string {
	rows := []string{p.row}
	switch {
	case p.section == "mix": // after the seed
		rows = []string{"*", p.row}
	case p.file == clusters: // after the number of instances
		rows = []string{"4", p.row}
	}
	cell := t.cell(p.file, p.section, "", p.column, rows...)
	if p.column == admitted {
		return fmt.Sprintf("%.1f %% over", 100*(t.number(cell)-1))
	}
	if many, isMultiple := strings.CutSuffix(cell, "x"); isMultiple {
		return many + " limits"
	}
	return cell
}

// allPublished returns all published figures beside ours, in plain text.
func (t *texts) allPublished() string {
	rows := [][]string{{"source", "figure", "published", "ours", "our traffic"}}
	for _, p := range publishedFigures {
		rows = append(rows, []string{p.who, p.what, p.figure, p.ours(t), p.on})
	}
	return page.Table(rows)
}

// links are the sources.
var links = map[string]string{
	cloudflare: "https://blog.cloudflare.com/counting-things-a-lot-of-different-things/",
	wso2:       "https://github.com/wso2/api-platform/issues/2187",
	databricks: "https://www.databricks.com/blog/high-performance-ratelimiting-databricks",
}

// published returns the table of the page. The rules of others are simulated, too.
func (t *texts) published() string {
	link := func(who string) string { return "[" + who + "](" + links[who] + ")" }
	return page.Markdown([]string{"source", "published", "their rule, simulated", "this server"}, [][]string{
		{link(cloudflare) + ": wrong decisions", wrongDecisions.figure, "–", wrongDecisions.ours(t)},
		{"the same: error of the rate", rateError.figure, "–", rateError.ours(t)},
		{link(wso2) + ": shared every 50 ms", every50ms.figure, every50ms.ours(t), ourRule.ours(t)},
		{link(databricks) + ": every 100 ms", every100ms.figure, every100ms.ours(t), ourRule.ours(t)},
	})
}
