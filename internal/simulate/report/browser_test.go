package report_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"oauth-server/internal/check"
	"oauth-server/internal/check/browser"
	"oauth-server/internal/simulate"
)

// site serves the page, and counts the requests to it.
type site struct {
	*httptest.Server
	asked atomic.Int32
}

func serve(t *testing.T, r *simulate.Result) *site {
	t.Helper()
	page := written(t, r)
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, page)
	}))
	t.Cleanup(s.Close)
	return s
}

func eval[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	check.OK(t, err, expression)
	return v
}

// hover moves the mouse over the data of chart i, 0 to 1 from the left, and returns the lines of
// the tooltip.
func hover(t *testing.T, ctx context.Context, i int, fraction float64) []string {
	t.Helper()
	at := eval[[]float64](t, ctx, fmt.Sprintf(`(() => {
		const plot = document.querySelectorAll(".chart")[%d].querySelector(".wide"), svg = plot.querySelector("svg");
		plot.scrollIntoView({block: "center"});
		const box = svg.getBoundingClientRect(), d = plot.dataset, scale = box.width / svg.viewBox.baseVal.width;
		return [box.left + scale * (Number(d.left) + %g * (d.right - d.left)), box.top + box.height / 2];
	})()`, i, fraction))
	check.OK(t, chromedp.Do(ctx, chromedp.MouseEvent("mouseMoved", at[0], at[1])))
	return eval[[]string](t, ctx, fmt.Sprintf(`[...document.querySelectorAll(".chart")[%d].querySelectorAll(".wide .tip:not([hidden]) > *")]
		.map((line) => line.textContent)`, i))
}

// TestBrowser uses the page like a reader: it points at charts, hides series, and sorts tables, by
// mouse and keys. None of this may write to the console or send requests.
func TestBrowser(t *testing.T) {
	t.Parallel()
	s := serve(t, sample())
	ctx := browser.New(t)
	console := chromedp.Console(ctx)
	check.OK(t, chromedp.Do(ctx, chromedp.EmulateViewport(1200, 900), chromedp.Navigate(s.URL)))

	// 288 parts of 10 minutes: the middle begins at 00:00 of the second day.
	row := eval[[]string](t, ctx, `[...document.querySelector(".chart tbody").rows[144].cells].map((c) => c.textContent)`)
	check.Equal(t, "time of the row", row[0], "5 May 00:00")
	check.Equal(t, "tooltip", hover(t, ctx, 0, 0.501), []string{row[0], "all" + row[1], "refused" + row[2], "delayed" + row[3]})
	check.Equal(t, "tooltip at the end", hover(t, ctx, 0, 0.9999)[0], "5 May 23:50")
	check.Equal(t, "tooltip of the curve", hover(t, ctx, 2, 0.6), []string{"131", "untouched97.4 %"})
	check.Equal(t, "tooltip of bars", hover(t, ctx, 3, 0.27), []string{"100/60s", "clients hit3.51 %", "requests refused4.21 %"})

	shown := func() bool {
		return eval[bool](t, ctx, `[...document.querySelector(".chart").querySelectorAll(".wide svg .series-1")]
			.some((group) => getComputedStyle(group).display !== "none")`)
	}
	check.Equal(t, "series is shown", shown(), true)
	check.OK(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(`.chart [data-series="1"]`))))
	check.Equal(t, "series is shown after a click", shown(), false)
	check.Equal(t, "tooltip without it", hover(t, ctx, 0, 0.501), []string{row[0], "all" + row[1], "delayed" + row[3]})

	marks := func() []string {
		return eval[[]string](t, ctx, `[...document.querySelector(".wide").querySelectorAll(".mark")].map((m) => m.textContent)`)
	}
	check.Equal(t, "marks", marks(), []string{"0", "1,000", "2,000", "3,000", "4,000"})
	check.OK(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(`.chart [data-series="0"]`))))
	check.Equal(t, "marks for few requests alone", marks(), []string{"0", "20", "40", "60", "80"})
	check.Equal(t, "height of few requests alone", eval[int](t, ctx, `(() => {
		const path = document.querySelector(".wide .series-2 path").getBoundingClientRect(), plot = document.querySelector(".wide");
		return Math.round(80 * path.height / (plot.dataset.bottom - plot.dataset.top) / plot.querySelector("svg").getBoundingClientRect().width * 860);
	})()`), eval[int](t, ctx, `Math.max(...[...document.querySelector(".chart tbody").rows].map((r) => Number(r.cells[3].dataset.sort)))`))
	check.OK(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(`.chart [data-series="0"]`))))
	check.Equal(t, "marks with all", marks(), []string{"0", "1,000", "2,000", "3,000", "4,000"})

	check.OK(t, chromedp.Do(ctx, chromedp.Focus(chromedp.CSS(".wide")), chromedp.KeyEvent(kb.End)))
	said := eval[string](t, ctx, `document.activeElement.ariaValueText`)
	if !strings.HasPrefix(said, "5 May 23:50, all ") || strings.Contains(said, "refused") {
		t.Errorf("a screen reader says %q", said)
	}

	column := func(n int) []string {
		return eval[[]string](t, ctx, fmt.Sprintf(`[...document.querySelector("#clients ~ .scroll tbody").rows].map((r) => r.cells[%d].textContent)`, n))
	}
	click := func(n int) string {
		head := fmt.Sprintf(`#clients ~ .scroll thead th:nth-child(%d)`, n+1)
		check.OK(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(head+" button"))))
		return eval[string](t, ctx, fmt.Sprintf(`document.querySelector("%s").ariaSort`, head))
	}
	check.Equal(t, "sorted", click(0), "ascending")
	check.Equal(t, "first client", column(0)[1], "batch-job")
	check.Equal(t, "sorted", click(1), "descending")
	check.Equal(t, "most requests", column(1)[0], "72,000")
	check.Equal(t, "sorted", click(1), "ascending")
	check.Equal(t, "fewest requests", column(1)[0], "12")

	check.Equal(t, "images of a hostile name", eval[int](t, ctx, `document.images.length`), 0)
	check.Equal(t, "title", eval[string](t, ctx, `document.title`), "Rate limit simulation, 4 May 2026 00:00 to 5 May 2026 23:59 UTC")
	check.Equal(t, "requests to the server", s.asked.Load(), 1)
	eval[int](t, ctx, `console.log("the end"), 1`)
	for m, err := range console {
		check.OK(t, err)
		if strings.Contains(m.Text, "the end") {
			break
		}
		t.Errorf("on the console: %+v", m)
	}
}

// TestBrowserWithoutScript: charts, tables and the choice of series work without scripts.
func TestBrowserWithoutScript(t *testing.T) {
	t.Parallel()
	s := serve(t, sample())
	ctx := browser.New(t)
	_, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	check.OK(t, err)
	const series = chromedp.CSS(`.chart .wide .series-1 .line`)
	check.OK(t, chromedp.Do(ctx,
		chromedp.EmulateViewport(1200, 900), chromedp.Navigate(s.URL),
		chromedp.WaitVisible(series), chromedp.WaitNotPresent(chromedp.CSS(".tip, thead button")),
		chromedp.Click(chromedp.CSS(`.chart [data-series="1"]`)), chromedp.WaitNotVisible(series),
		chromedp.Click(chromedp.CSS(`.chart summary`)), chromedp.WaitVisible(chromedp.CSS(`.chart details table`)),
	))
}

// TestBrowserOnPaperAndPhones: the page fits a narrow screen, and a print shows everything. The
// flag -show keeps pictures.
func TestBrowserOnPaperAndPhones(t *testing.T) {
	t.Parallel()
	s := serve(t, sample())
	ctx := browser.New(t)
	check.OK(t, chromedp.Do(ctx, chromedp.Navigate(s.URL)))
	for name, scheme := range map[string]string{"light": "light", "dark": "dark"} {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		check.OK(t, err)
		for _, width := range []int64{1200, 360} {
			check.OK(t, chromedp.Do(ctx, chromedp.EmulateViewport(width, 900)))
			check.Equal(t, "width that is needed", eval[int64](t, ctx, `document.documentElement.scrollWidth`), width)
			visible := map[bool]string{true: "wide", false: "narrow"}[width > 640]
			check.Equal(t, "charts that are shown", eval[string](t, ctx,
				`[...new Set([...document.querySelectorAll(".plot")].filter((p) => p.checkVisibility()).map((p) => p.classList[1]))].join()`), visible)
			if *show != "" {
				if width > 640 {
					hover(t, ctx, 0, 0.3)
				}
				picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
				check.OK(t, err)
				check.OK(t, os.WriteFile(filepath.Join(*show, fmt.Sprintf("%s-%d.png", name, width)), picture, 0o600))
			}
		}
	}
	check.OK(t, chromedp.Do(ctx, chromedp.EmulateViewport(360, 900)))
	paper, err := chromedp.Run(ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4)))
	check.OK(t, err)
	if *show != "" {
		check.OK(t, os.WriteFile(filepath.Join(*show, "paper.pdf"), paper, 0o600))
	}
	_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: "print", Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	})
	check.OK(t, err)
	check.Equal(t, "colour scheme of paper", eval[string](t, ctx, `getComputedStyle(document.documentElement).colorScheme`), "light")
	check.Equal(t, "charts that are printed", eval[int](t, ctx, `[...document.querySelectorAll(".wide")].filter((p) => p.checkVisibility()).length`), 4)
	check.Equal(t, "tables of values that are printed", eval[int](t, ctx, `[...document.querySelectorAll("details, .narrow")].filter((p) => p.checkVisibility()).length`), 0)
}
