package main

import (
	"fmt"
	"strings"
)

// published is a figure that others published, and the cell that is ours.
type published struct {
	who, what, figure    string
	section, column, row string
	on                   string // our traffic
}

const (
	cloudflare = "[Cloudflare](https://blog.cloudflare.com/counting-things-a-lot-of-different-things/)"
	ourMix     = "a [mix of sources](#a-heavy-tailed-mix)"
	criteo     = "[Criteo](https://medium.com/criteo-engineering/distributed-rate-limiting-algorithms-a35f7e24783)"
)

var publishedFigures = []published{
	{cloudflare, "requests wrongly allowed or limited", "0.003 %", "mix", "WRONG", "sliding", ourMix + ", one frame, mean of four seeds"},
	{cloudflare, "the same", "0.003 %", "mix", "WRONG", "sliding-2", "the same, two frames"},
	{cloudflare, "sources about which that was wrong, of 270,000", "3", "mix", "KEYS", "sliding", "the same, one frame"},
	{cloudflare, "mean difference of the real and the estimated rate", "6 %", "mix", "RATE ERROR", "sliding", "the same, one frame"},
	{criteo, "fixed window: the most that passes", "2 limits", "edge", "WORST WINDOW", "fixed", "[bursts at a frame's edge](#bursts-at-a-frames-edge)"},
	{criteo, "fixed window against the perfect one", "a chart", "wander", "RATE ERROR", "fixed", "[random traffic](#criteos-comparison): the mean difference"},
	{criteo, "sliding window against the perfect one", "a chart", "wander", "RATE ERROR", "sliding", "the same"},
	{criteo, "five windows of 15 s against the perfect one", "a chart", "wander", "RATE ERROR", "sliding-4", "the same"},
}

// writePublished writes the table of published figures beside ours.
func (p *program) writePublished() error {
	var b strings.Builder
	b.WriteString("| who | what | published | ours | on |\n|---|---|---|---|---|\n")
	for _, f := range publishedFigures {
		ours, err := p.printed[f.section].cell(f.column, f.row)
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
