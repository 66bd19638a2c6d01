// Package accuracy compares the algorithms of rate limiting on traffic that is made up, and writes the tables and charts
// of lab/pages/accuracy.md: `make accuracy` runs its tests with -update. The figures beside published ones are cells of the
// tables, and the charts are drawn from them and from the same studies. The tables of several instances are those that
// lab/clusters has written. Nothing else depends on the time or the machine: if the code is the same, the page is.
package accuracy

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/page"
)

const (
	root     = "../.."
	pageFile = "lab/pages/accuracy.md"
)

var update = flag.Bool("update", false, "run all studies, and write their tables and charts")

// printed has the tables of sections.
type printed map[string]output

// cell returns a cell of a section.
func (p printed) cell(t *testing.T, section, column string, row ...string) string {
	t.Helper()
	cell, err := p[section].cell(column, row...)
	check.OK(t, err, section)
	return cell
}

// read returns what the page has in a section.
func read(t *testing.T, section string) string {
	t.Helper()
	text, err := page.Read(filepath.Join(root, pageFile), section)
	check.OK(t, err)
	return text
}

func write(t *testing.T, section, text string) {
	t.Helper()
	check.OK(t, page.Write(filepath.Join(root, pageFile), section, text))
}

// TestStudies runs the studies and writes the page, with -update. Otherwise it runs the smallest study, which stands for
// all, and compares it with the page. With -run TestStudies/sections/NAME -update it leaves what is made from several sections
// as it is.
func TestStudies(t *testing.T) {
	texts := make([]string, len(sections))
	all := t.Run("sections", func(t *testing.T) {
		for i, s := range sections {
			if !*update && s.name != "edge" {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				texts[i] = "```\n" + s.text(s.run(t, false)) + "```"
			})
		}
	})
	p := printed{}
	for i, s := range sections {
		switch {
		case texts[i] == "":
			all = false
		case *update:
			if p[s.name] = parse(texts[i]); !s.cells {
				write(t, s.name, texts[i])
			}
		case strings.TrimSpace(read(t, s.name)) != texts[i]:
			t.Errorf("the page does not have this; make accuracy writes it:\n%s", texts[i])
		}
	}
	if !all {
		return
	}
	for _, name := range clusterSections {
		p[name] = parse(read(t, name))
	}
	write(t, "published", p.published(t))
	write(t, "aims", p.aims(t))
	write(t, "load", p.loads(t))
	p.drawLoads(t)
	drawCriteo(t)
	drawSpikes(t)
}

// TestPageHasAllSections: the page has a place for each section, so that it can be written.
func TestPageHasAllSections(t *testing.T) {
	names := append([]string{"published", "aims", "load"}, clusterSections...)
	for _, s := range sections {
		if !s.cells {
			names = append(names, s.name)
		}
	}
	for _, name := range names {
		read(t, name)
	}
}

func TestCells(t *testing.T) {
	out := parse(`poisson at 1.00x, clients: 1 (ignore)

RATE   ALGORITHM  WRONG
0.50x  sliding    0.01 %
1.00x  sliding-2  12.50 %

Requests and tokens of all clients; AT MOST in any 1s:

SEED  ALGORITHM  REQUESTS/S  AT MOST  TOKENS/S  SHARE
1     sliding    1.67        11       1.57      0.002 %
2     sliding    1.67        11       1.59      0.004 %
`)
	for _, tc := range []struct {
		column string
		row    []string
		want   string
		number float64
	}{
		{"WRONG", []string{"1.00x", "sliding-2"}, "12.50 %", 12.5},
		{"RATE", []string{"0.50x"}, "0.50x", 0.5},
		{"TOKENS/S", []string{"2", "sliding"}, "1.59", 1.59},
		{"SHARE", []string{"sliding"}, "0.003 %", 0.003},
	} {
		got, err := out.cell(tc.column, tc.row...)
		check.OK(t, err)
		number, err := figure(got)
		check.OK(t, err)
		check.Equal(t, tc.column, got, tc.want)
		check.Equal(t, tc.column, number, tc.number)
	}
	for column, row := range map[string]string{"WRONG": "fixed", "NONE": "sliding", "TOKENS/S": "fixed"} {
		if got, err := out.cell(column, row); err == nil {
			t.Errorf("%s of %s: %s", column, row, got)
		}
	}
}
