package metrics_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/internal/observe/metrics"
)

var update = flag.Bool("update", false, "write the tables of docs/metrics.md")

const (
	docsPage  = "../../../docs/metrics.md"
	docsBegin = "<!-- begin generated -->\n"
	docsEnd   = "<!-- end generated -->\n"
)

func TestDocsListEveryMetric(t *testing.T) {
	raw, err := os.ReadFile(docsPage)
	check.OK(t, err)
	before, rest, begins := strings.Cut(string(raw), docsBegin)
	tables, after, ends := strings.Cut(rest, docsEnd)
	if !begins || !ends {
		t.Fatalf("%s has no mark where the tables begin or end", docsPage)
	}
	if *update {
		page := before + docsBegin + docsTables() + docsEnd + after
		check.OK(t, os.WriteFile(docsPage, []byte(page), 0o644))
		return
	}
	check.Equal(t, docsPage+" is out of date: make dashboards", tables, docsTables())
}

func docsTables() string {
	var b strings.Builder
	for _, s := range metrics.Sections() {
		fmt.Fprintf(&b, "\n### %s\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n", s.Title)
		for _, i := range s.Metrics {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", i.Name, i.Kind, strings.Join(i.Labels, ", "), i.Help)
		}
	}
	return b.String() + "\n"
}
