// Command accuracy writes the tables and charts of docs/accuracy.md. `make accuracy` runs it:
//
//	go -C lab run ./cmd/accuracy [-only NAME,...]
//
// The figures beside published ones are cells of the tables, and the charts are drawn from them and from the same
// studies. The tables of several instances are those that the page has. Nothing else depends on the time or the machine:
// if the code is the same, the page is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"oauth-server/lab/page"
)

const pageFile = "docs/accuracy.md"

func main() {
	root := flag.String("root", "..", "directory of the project")
	only := flag.String("only", "", "sections to run, comma-separated; what is made from several is left as it is")
	flag.Parse()
	if err := run(context.Background(), *root, *only); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, only string) error {
	p := &program{root: root, printed: map[string]output{}}
	wanted := slices.DeleteFunc(slices.Clone(sections), func(s section) bool {
		return only != "" && !slices.Contains(strings.Split(only, ","), s.name)
	})
	texts, err := runAll(ctx, wanted)
	if err != nil {
		return err
	}
	for i, s := range wanted {
		p.printed[s.name] = parse(texts[i])
		if err := p.write(s.name, fmt.Sprintf("```\n%s```", texts[i])); err != nil {
			return err
		}
	}
	if only != "" {
		return nil
	}
	if err := errors.Join(p.readClusters(), p.writePublished(), p.writeAims()); err != nil {
		return err
	}
	return p.draw(ctx)
}

// program writes the page.
type program struct {
	root    string
	printed map[string]output // by section
}

// runAll runs the studies of sections, one on each core, and returns their tables.
func runAll(ctx context.Context, all []section) ([]string, error) {
	texts, errs := make([]string, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, s := range all {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			fmt.Println(s.name, "…")
			texts[i], errs[i] = s.text(ctx)
		})
	}
	running.Wait()
	return texts, errors.Join(errs...)
}

// readClusters reads the tables of clusters from the page.
func (p *program) readClusters() error {
	text, err := os.ReadFile(filepath.Join(p.root, pageFile))
	if err != nil {
		return err
	}
	for _, name := range clusterSections {
		_, rest, _ := strings.Cut(string(text), "<!-- begin "+name+" -->")
		tables, _, _ := strings.Cut(rest, "<!-- end "+name+" -->")
		p.printed[name] = parse(tables)
	}
	return nil
}

func (p *program) write(section, text string) error {
	return page.Write(filepath.Join(p.root, pageFile), section, text)
}
