package main

import (
	"fmt"
	"strings"
)

// published is a figure that others published, and the cell that is ours.
type published struct {
	who, what, figure string
	section           string
	table             int
	column            string
	nth               int
	row               []string
	on                string // our traffic
}

const (
	cloudflare = "[Cloudflare](https://blog.cloudflare.com/counting-things-a-lot-of-different-things/)"
	criteo     = "[Criteo](https://medium.com/criteo-engineering/distributed-rate-limiting-algorithms-a35f7e24783)"
)

var publishedFigures = []published{
	{cloudflare, "requests wrongly allowed or limited", "0.003 %", "mix", estimates, "WRONG", 1, []string{"sliding"}, "a [mix of sources](#a-heavy-tailed-mix)"},
	{cloudflare, "mean difference of real and estimated rate", "6 %", "mix", estimates, "RATE ERROR", 1, []string{"sliding"}, "the same"},
	{cloudflare, "sources limited though below the threshold", "none", "mix", estimates, "WRONGLY LIMITED", 1, []string{"sliding"}, "the same; requests, not sources"},
	{criteo, "fixed window: the most that passes", "2 limits", "edge", decisions, "WORST WINDOW", 1, []string{"fixed"}, "a [client that waits for the mark](#bursts-at-a-frames-edge)"},
	{criteo, "fixed window against the perfect one", "a chart", "wander", estimates, "RATE ERROR", 1, []string{"fixed"}, "[random traffic](#criteos-comparison); mean difference"},
	{criteo, "sliding window against the perfect one", "a chart", "wander", estimates, "RATE ERROR", 1, []string{"sliding"}, "the same"},
	{criteo, "five windows of 15 s against the perfect one", "a chart", "wander", estimates, "RATE ERROR", 1, []string{"sliding-4"}, "the same"},
}

// writePublished writes the table of published figures beside ours.
func (p *program) writePublished() error {
	var b strings.Builder
	b.WriteString("| who | what | published | ours | on |\n|---|---|---|---|---|\n")
	for _, f := range publishedFigures {
		ours, err := p.printed[f.section].cell(f.table, f.column, f.nth, f.row...)
		if err != nil {
			return fmt.Errorf("section %s: %w", f.section, err)
		}
		if many, isMultiple := strings.CutSuffix(ours, "x"); isMultiple {
			ours = many + " limits"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.who, f.what, f.figure, ours, f.on)
	}
	return p.write("published", b.String())
}
