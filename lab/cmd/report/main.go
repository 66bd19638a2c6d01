// Command report writes the tables of docs/measurements.md, and lab/results/comparison.txt, from the other files in lab/results.
// The make targets that measure run it, in lab/:
//
//	go run ./cmd/report
//
// The page has the rows that answer a reader's question; comparison.txt has all rows of the benchmarks beside other
// libraries, all figures beside published ones, and the goals. Latencies of benchmarks are the least of all runs,
// because other programs on either processor make them many times longer; other figures are medians.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"oauth-server/lab/page"
)

// The files that this program writes, below the root of the repository.
const (
	pageFile       = "docs/measurements.md"
	comparisonFile = "lab/results/comparison.txt"
)

func main() {
	if err := run(".."); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	all, err := outputs(root)
	if err != nil {
		return err
	}
	for _, o := range all {
		err = errors.Join(err, page.Write(filepath.Join(root, o.file), o.section, o.text))
	}
	return err
}

// output is a section of a file.
type output struct{ file, section, text string }

// outputs makes all sections from the results below the root.
func outputs(root string) ([]output, error) {
	dir := filepath.Join(root, "lab/results")
	text, err := os.ReadFile(filepath.Join(dir, "bench.txt")) //nolint:gosec // G304: a file of the project
	if err != nil {
		return nil, err
	}
	bench := parse(string(text))
	table, err := bench.table(rows())
	if err != nil {
		return nil, fmt.Errorf("bench.txt is not complete: %w", err)
	}
	found := texts{dir: dir}
	all := []output{
		{comparisonFile, "benchmarks", table},
		{comparisonFile, "published", found.allPublished()},
		{comparisonFile, "goals", found.goals()},
	}
	for _, c := range choices {
		text, err := bench.choose(c)
		if err != nil {
			return nil, err
		}
		all = append(all, output{pageFile, c.section, text})
	}
	for section, table := range map[string]func() string{
		"costs": found.costs, "overload": found.overload, "exactness": found.exactness, "growth": found.growth,
		"algorithms": found.algorithms, "published": found.published, "sign-ins": found.signIns, "clients": found.clients,
	} {
		all = append(all, output{pageFile, section, table()})
	}
	return all, errors.Join(found.missing...)
}
