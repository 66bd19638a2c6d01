package metrics_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"oauth-server/internal/metrics"
)

var update = flag.Bool("update", false, "write the tables of docs/metrics.md")

const (
	docsPage  = "../../docs/metrics.md"
	docsBegin = "<!-- begin generated -->\n"
	docsEnd   = "<!-- end generated -->\n"
)

func TestDocsListEveryMetric(t *testing.T) {
	raw, err := os.ReadFile(docsPage)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(raw), docsBegin)
	require.True(t, ok, "no mark where the tables begin")
	tables, after, ok := strings.Cut(rest, docsEnd)
	require.True(t, ok, "no mark where the tables end")
	if *update {
		page := before + docsBegin + docsTables() + docsEnd + after
		require.NoError(t, os.WriteFile(docsPage, []byte(page), 0o644))
		return
	}
	require.Equal(t, docsTables(), tables, "out of date: make dashboards")
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
