// Package accuracy compares algorithms of rate limiting on simulated traffic. `make accuracy` runs its tests with -update, which
// write the tables of lab/results/accuracy.txt and the charts. Nothing depends on the time or the machine: the same code
// writes the same tables.
//
// Decisions are compared with an exact log of the algorithm's own admissions, with N for the limit. A false admit is a request
// that was admitted although N were admitted in the window before it. A false denial was denied although there were fewer.
// FAR is the share of those that were off by more than 15 % of the limit. WORST WINDOW is the most admitted in any window.
//
// Estimates count all requests, admitted or not, as Cloudflare does. A request is wrongly allowed if the estimate is within the
// limit and the exact count is not, and wrongly limited if only the count is. RATE ERROR is the mean difference, relative
// to the count. KEYS is how many keys had a wrong decision.
//
// fixed, weighted, sliding-N (N frames per window) and strict are the server's own code. GCRA and a leaky bucket as a meter
// admit the same requests as token-bucket. leaky-queue delays requests, as nginx does.
//
// The traffic: poisson is independent requests; lognormal has log-normal pauses; edge sends a full limit at the end of a window and
// as much as possible in the next one; mix has 270,000 sources, as many as Cloudflare had, with a quarter of its 400 million
// requests and a mean rate with which about three sources get wrong decisions; wander is Criteo's, a rate that wanders
// around the limit; spikes sends three limits' worth after each full hour.
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
	root    = "../.."
	results = "lab/results/accuracy.txt"
)

var update = flag.Bool("update", false, "run all studies, and write their tables and charts")

// read returns the tables that are committed of a study.
func read(t *testing.T, section string) string {
	t.Helper()
	text, err := page.Read(filepath.Join(root, results), section)
	check.OK(t, err)
	return text
}

// TestStudies runs the studies and writes their results, with -update. Otherwise it runs the smallest study, which stands for
// all, and compares it with the committed results. With -run TestStudies/sections/NAME -update it draws no charts.
func TestStudies(t *testing.T) {
	texts := make([]string, len(sections))
	all := t.Run("sections", func(t *testing.T) {
		for i, s := range sections {
			if !*update && s.name != "edge" {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				texts[i] = strings.TrimSpace(s.text(s.run(t, false)))
			})
		}
	})
	for i, s := range sections {
		switch {
		case texts[i] == "":
			all = false
		case *update:
			check.OK(t, page.Write(filepath.Join(root, results), s.name, texts[i]))
		case strings.TrimSpace(read(t, s.name)) != texts[i]:
			t.Errorf("%s does not have this; make accuracy writes it:\n%s", results, texts[i])
		}
	}
	if !all {
		return
	}
	drawLoads(t)
	drawCriteo(t)
	drawSpikes(t)
}

// TestResultsHaveAllSections: the file has a place for each study, so that it can be written.
func TestResultsHaveAllSections(t *testing.T) {
	for _, s := range sections {
		read(t, s.name)
	}
}
