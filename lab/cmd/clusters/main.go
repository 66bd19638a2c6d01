// Command clusters writes the tables and charts of docs/simulate-clusters.md, and some of docs/scale.md. `make clusters` runs it:
//
//	go -C tools run ./cmd/clusters [-only NAME,...]
//
// Each section is command lines of `oauth-server simulate cluster` and what they print, so that a reader can run
// them. Nothing depends on the time or the machine: if the code is the same, the pages are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"oauth-server/lab/page"
)

// section is one of a page, and the command lines that make it. The first of them draws a chart too, if there is one.
type section struct {
	file, name string
	args       []string
	chart      string
}

const (
	clustersPage = "docs/simulate-clusters.md"
	scalePage    = "docs/scale.md"
)

var sections = []section{
	{clustersPage, "plain", []string{"--instances 10 --limit 3000/60s --rate 500/s --flush 1s,plain:100ms,plain:1s,plain:10s"}, "docs/pictures/clusters-plain.svg"},
	{clustersPage, "faults", []string{
		"--instances 10 --limit 600/60s --rate 2x --loss 1%",
		"--instances 10 --limit 600/60s --rate 2x --loss 10%",
		"--instances 10 --limit 600/60s --rate 2x --latency 100ms --jitter 100ms",
		"--instances 10 --limit 600/60s --rate 2x --down 2m+5m",
		"--instances 10 --limit 600/60s --rate 2x --skew 5m --step 1@3m:+1h,2@5m:-1h",
		"--instances 10 --limit 600/60s --rate 2x --skew 5m --flush plain:1s",
	}, ""},
	{clustersPage, "bursts", []string{
		"--instances 1,10 --traffic spikes --clients retry-after --duration 2h --limit 20/60s --flush 1s,plain:1s",
		"--instances 10 --traffic spikes --clients retry-after --duration 2h --limit 20/60s --balance sticky",
	}, ""},
	{scalePage, "hot-key", []string{"--instances 1,2,5,10,20,50,100 --limit 3000/60s --rate 500/s --duration 4m"}, "docs/pictures/clusters-growth.svg"},
	{scalePage, "many-keys", []string{
		"--instances 1,10,100 --keys 1000000 --rate 0.01x --duration 2m",
		"--instances 100 --keys 1000000 --rate 0.01x --duration 2m --balance sticky",
		"--instances 1,10,100 --keys 10000 --rate 0.01x --duration 2m",
		"--instances 1,10,100 --keys 10000 --rate 0.01x --duration 2m --flush plain:1s",
	}, ""},
}

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

func run(ctx context.Context, root, only string) (err error) {
	wanted := names()
	if only != "" {
		wanted = strings.Split(only, ",")
	}
	for _, name := range wanted {
		if !slices.Contains(names(), name) {
			return fmt.Errorf("-only %s: the sections are %s", name, strings.Join(names(), ", "))
		}
	}
	dir, err := os.MkdirTemp("", "clusters-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary := filepath.Join(dir, "oauth-server")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/oauth-server") //nolint:gosec // G204: its own directory
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	for _, s := range sections {
		if slices.Contains(wanted, s.name) {
			if err := s.write(ctx, root, binary); err != nil {
				return err
			}
		}
	}
	return nil
}

// write runs the command lines of a section and writes it.
func (s *section) write(ctx context.Context, root, binary string) error {
	var text strings.Builder
	for i, args := range s.args {
		args = "simulate cluster " + args
		fmt.Println("oauth-server", args)
		words := strings.Fields(args)
		if i == 0 && s.chart != "" {
			words = append(words, "--chart", filepath.Join(root, s.chart))
		}
		cmd := exec.CommandContext(ctx, binary, words...) //nolint:gosec // G204: those above
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("oauth-server %s: %w", args, err)
		}
		fmt.Fprintf(&text, "```\n$ oauth-server %s\n%s```\n\n", args, out)
	}
	return page.Write(filepath.Join(root, s.file), s.name, text.String())
}
