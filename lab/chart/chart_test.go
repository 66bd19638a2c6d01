package chart_test

import (
	"encoding/xml"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oauth-server/internal/check"
	"oauth-server/lab/chart"
)

// points returns points from X and Y by turns.
func points(xy ...float64) (all []chart.Point) {
	for pair := range slices.Chunk(xy, 2) {
		all = append(all, chart.Point{X: pair[0], Y: pair[1]})
	}
	return all
}

// lines returns the paths of lines with the first colour of the palette.
func lines(t *testing.T, charts ...*chart.Chart) [][]string {
	t.Helper()
	picture, err := chart.SVG(charts...)
	check.OK(t, err)
	check.OK(t, xml.Unmarshal([]byte(picture), new(any)))
	return regexp.MustCompile(`color="#0072b2">.*?d="M[\d.]+ ([\d.]+)`).FindAllStringSubmatch(picture, -1)
}

// TestGap: between two points that are too far from each other, and around one that is no number, there is no line.
func TestGap(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		series chart.Series
		lines  int
	}{
		"none":     {chart.Series{Points: points(0, 1, 1, 2, 9, 3)}, 1},
		"too far":  {chart.Series{Points: points(0, 1, 1, 2, 8, 3, 9, 3), Gap: 5}, 2},
		"NaN":      {chart.Series{Points: points(0, 1, 1, 2, 2, math.NaN(), 3, 1, 4, 2)}, 2},
		"infinite": {chart.Series{Points: points(0, 1, 1, 2, 2, math.Inf(1), 3, 1, 4, 2)}, 2},
		"alone":    {chart.Series{Points: points(0, 1, 1, 2, 2, math.NaN(), 3, 1)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "pieces", len(lines(t, &chart.Chart{Series: []chart.Series{tt.series}})), tt.lines)
		})
	}
}

// TestChartsOfOnePictureAreComparable: they have the same scale.
func TestChartsOfOnePictureAreComparable(t *testing.T) {
	t.Parallel()
	level := func(y float64) *chart.Chart {
		return &chart.Chart{Title: "Level < 10 & above", Series: []chart.Series{{Name: "a", Points: points(0, y, 10, y)}}}
	}
	alone, err := strconv.ParseFloat(lines(t, level(1))[0][1], 64)
	check.OK(t, err)
	beside, err := strconv.ParseFloat(lines(t, level(1), level(9))[0][1], 64)
	check.OK(t, err)
	if beside < alone+100 {
		t.Errorf("1 is drawn at %v beside 9, and at %v alone: want it much lower", beside, alone)
	}
}

func TestWhatCannotBeDrawn(t *testing.T) {
	t.Parallel()
	log := chart.Axis{Kind: chart.Log}
	for name, tt := range map[string]struct {
		chart *chart.Chart
		says  string
	}{
		"log axis from 0": {&chart.Chart{Y: chart.Axis{Kind: chart.Log, Max: 100}}, "cannot begin at 0"},
		"no series":       {&chart.Chart{}, chart.ErrNothing.Error()},
		"no values":       {&chart.Chart{Series: []chart.Series{{Points: points(1, math.NaN())}}}, chart.ErrNothing.Error()},
		"no place":        {&chart.Chart{X: log, Y: log, Series: []chart.Series{{Points: points(1, 0, 0, 1)}}}, chart.ErrNothing.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "chart.svg")
			check.ErrorSays(t, tt.chart.Write(path), tt.says)
			_, err := os.Stat(path)
			check.ErrorIs(t, err, os.ErrNotExist)
		})
	}
	_, err := chart.SVG()
	check.ErrorIs(t, err, chart.ErrNothing)
}

// TestLegend: each named series has an entry with its colour, in rows.
func TestLegend(t *testing.T) {
	t.Parallel()
	c := &chart.Chart{}
	for _, name := range []string{strings.Repeat("long", 15), strings.Repeat("name", 15), "", "<b>"} {
		c.Series = append(c.Series, chart.Series{Name: name, Points: points(0, 1, 1, 2), Dashes: chart.Dotted})
	}
	picture, err := chart.SVG(c)
	check.OK(t, err)
	for i, want := range []string{strings.Repeat("long", 15), strings.Repeat("name", 15), "", "&lt;b&gt;"} {
		entry := `stroke="` + chart.Palette(i) + `" stroke-width="1.75" stroke-dasharray="2 2.5"`
		_, after, found := strings.Cut(picture, entry)
		if check.Equal(t, "an entry of "+want, found, want != ""); found && !strings.Contains(strings.SplitN(after, "</text>", 2)[0], ">"+want) {
			t.Errorf("the entry of %s is %.200s", want, after)
		}
	}
}
