// Command accuracy writes the tables and charts of docs/accuracy.md. `make accuracy` runs it:
//
//	go -C tools run ./cmd/accuracy [-only NAME,...]
//
// Each section of the page is a command line of `oauth-server simulate` and what that prints, so that a reader can
// run it; the figures beside published ones are cells of these tables, and the charts are drawn from them and from
// the same command with -o json. Nothing depends on the time or the machine: if the code is the same, the
// page is.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
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

func run(ctx context.Context, root, only string) (err error) {
	dir, err := os.MkdirTemp("", "accuracy-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p := &program{root: root, binary: filepath.Join(dir, "oauth-server"), printed: map[string]output{}}
	if err := p.build(ctx); err != nil {
		return err
	}
	wanted := slices.DeleteFunc(slices.Clone(sections), func(s section) bool {
		return only != "" && !slices.Contains(strings.Split(only, ","), s.name)
	})
	texts, err := p.runAll(ctx, wanted)
	if err != nil {
		return err
	}
	for i, s := range wanted {
		p.printed[s.name] = parse(string(texts[i]))
		if err := p.write(s.name, fmt.Sprintf("```\n$ oauth-server %s\n%s```", s.args, texts[i])); err != nil {
			return err
		}
	}
	if only != "" {
		return nil
	}
	if err := errors.Join(p.writePublished(), p.writeAims()); err != nil {
		return err
	}
	return p.draw(ctx)
}

// program is the server's, whose output is what the page has.
type program struct {
	root, binary string
	printed      map[string]output // by section
}

func (p *program) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", p.binary, "./cmd/oauth-server") //nolint:gosec // G204: its own directory
	cmd.Dir, cmd.Stderr = p.root, os.Stderr
	return cmd.Run()
}

// runAll runs the command lines of sections, one on each core, and returns what they print.
func (p *program) runAll(ctx context.Context, all []section) ([][]byte, error) {
	texts, errs := make([][]byte, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	slots := make(chan struct{}, runtime.NumCPU())
	for i, s := range all {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			fmt.Println(s.name, "…")
			texts[i], errs[i] = p.run(ctx, s.args)
		})
	}
	running.Wait()
	return texts, errors.Join(errs...)
}

// run runs a command line of the program.
func (p *program) run(ctx context.Context, args string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.binary, strings.Fields(args)...) //nolint:gosec // G204: those below
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("oauth-server %s: %w", args, err)
	}
	return out, nil
}

// json runs a command line with -o json.
func (p *program) json(ctx context.Context, args string, into any) error {
	out, err := p.run(ctx, args+" -o json")
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

func (p *program) write(section, text string) error {
	return page.Write(filepath.Join(p.root, pageFile), section, text)
}
