package accuracy

import (
	"fmt"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/page"
)

// publishedFigure is a figure that others published, and the cell that is ours.
type publishedFigure struct {
	who, what, figure    string
	section, column, row string
	on                   string // our traffic
}

const (
	cloudflare = "[Cloudflare](https://blog.cloudflare.com/counting-things-a-lot-of-different-things/)"
	ourMix     = "a [mix of sources](#a-mix-of-sources)"
	criteo     = "[Criteo](https://medium.com/criteo-engineering/distributed-rate-limiting-algorithms-a35f7e24783)"
)

const (
	wso2       = "[wso2 API Platform](https://github.com/wso2/api-platform/issues/2187)"
	databricks = "[Databricks](https://www.databricks.com/blog/high-performance-ratelimiting-databricks)"
	twice      = "[four instances](#several-instances), offered twice the limit"
	fourTimes  = "the same, offered four times the limit"
)

var publishedFigures = []publishedFigure{
	{cloudflare, "requests wrongly allowed or limited", "0.003 %", "mix", "WRONG", "sliding", ourMix + ", one frame, mean of four seeds"},
	{cloudflare, "the same", "0.003 %", "mix", "WRONG", "sliding-2", "the same, two frames"},
	{cloudflare, "sources with wrong decisions, of 270,000", "3", "mix", "KEYS", "sliding", "the same, one frame"},
	{cloudflare, "mean difference between real and estimated rate", "6 %", "mix", "RATE ERROR", "sliding", "the same, one frame"},
	{criteo, "fixed window: maximum admitted", "2 limits", "edge", "WORST WINDOW", "fixed", "[bursts at a frame's edge](#bursts-at-a-frames-edge)"},
	{criteo, "fixed window against the perfect one", "a chart", "wander", "RATE ERROR", "fixed", "[random traffic](#random-traffic): the mean difference"},
	{criteo, "sliding window against the perfect one", "a chart", "wander", "RATE ERROR", "sliding", "the same"},
	{criteo, "five windows of 15 s against the perfect one", "a chart", "wander", "RATE ERROR", "sliding-4", "the same"},
	{wso2, "gateways that synchronize through Redis every 50 ms", "13.1 % over", "cluster-2x", meanAdmitted, "plain:50ms", twice},
	{wso2, "the same", "13.1 % over", "cluster-4x", meanAdmitted, "plain:50ms", fourTimes},
	{wso2, "every 10 ms", "3.7 % over", "cluster-2x", meanAdmitted, "plain:10ms", twice},
	{wso2, "the same", "3.7 % over", "cluster-4x", meanAdmitted, "plain:10ms", fourTimes},
	{databricks, "clients that report every 100 ms", "about 5 % over", "cluster-2x", meanAdmitted, "plain:100ms", twice},
	{databricks, "the same", "about 5 % over", "cluster-4x", meanAdmitted, "plain:100ms", fourTimes},
	{"this server", "its own [rule](simulate-clusters.md#against-a-plain-interval)", "", "cluster-2x", meanAdmitted, "1s", twice},
	{"this server", "the same", "", "cluster-4x", meanAdmitted, "1s", fourTimes},
}

// meanAdmitted is the column of clusters with what was admitted, in parts of the limit.
const meanAdmitted = "MEAN"

// published returns the table of published figures beside ours.
func (p printed) published(t *testing.T) string {
	t.Helper()
	var rows [][]string
	for _, f := range publishedFigures {
		ours := p.cell(t, f.section, f.column, f.row)
		if f.column == meanAdmitted {
			parts, err := figure(ours)
			check.OK(t, err)
			ours = fmt.Sprintf("%.1f %% over", 100*(parts-1))
		}
		if many, isMultiple := strings.CutSuffix(ours, "x"); isMultiple {
			ours = many + " limits"
		}
		rows = append(rows, []string{f.who, f.what, f.figure, ours, f.on})
	}
	return page.Markdown([]string{"source", "figure", "published", "ours", "our traffic"}, rows)
}
