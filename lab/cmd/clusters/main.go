// Command clusters writes the tables and charts of docs/simulate-clusters.md, and some of docs/scale.md. `make clusters` runs it:
//
//	go -C lab run ./cmd/clusters [-only NAME,...]
//
// Nothing depends on the time or the machine: if the code is the same, the pages are.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oauth-server/lab/clusters"
	"oauth-server/lab/page"
)

func main() {
	root := flag.String("root", "..", "directory of the project")
	only := flag.String("only", "", "sections to write, comma-separated (default all: "+strings.Join(names(), ",")+")")
	flag.Parse()
	if err := run(context.Background(), *root, *only); err != nil {
		fmt.Fprintln(os.Stderr, "clusters:", err)
		os.Exit(1)
	}
}

func names() (all []string) {
	for _, s := range sections {
		all = append(all, s.name)
	}
	return all
}

func run(ctx context.Context, root, only string) error {
	wanted := names()
	if only != "" {
		wanted = strings.Split(only, ",")
	}
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("-only %s: the sections are %s", name, strings.Join(names(), ", "))
		}
	}
	for _, s := range sections {
		if !slices.Contains(wanted, s.name) {
			continue
		}
		if err := s.write(ctx, root); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// write runs the studies of a section and writes it.
func (s *section) write(ctx context.Context, root string) error {
	text, runs, err := s.text(ctx)
	if err == nil && s.chart != "" {
		err = clusters.WriteCharts(filepath.Join(root, s.chart), runs)
	}
	if err != nil {
		return err
	}
	return page.Write(filepath.Join(root, s.file), s.name, text)
}

// text returns what the page has of a section, and the runs of the first study.
func (s *section) text(ctx context.Context) (text string, first []clusters.Run, err error) {
	for i, one := range s.studies {
		fmt.Println(s.name+":", one.title)
		runs, err := one.Run(ctx)
		if err != nil {
			return "", nil, err
		}
		if i == 0 {
			first = runs
		}
		text += fmt.Sprintf("```\n%s\n\n%s```\n\n", one.title, clusters.Text(runs))
	}
	return text, first, nil
}
