// Command overload measures what becomes of requests when more are offered than the server can answer, each client below
// its limit, with admission control and without. It writes the tables of lab/pages/overload.md and its picture.
// `make bench-overload` runs it:
//
//	go -C lab build -o ../.bin/overload ./cmd/overload && cd lab && taskset -c 1 ../.bin/overload
//
// With any flag, as for a part of it, it prints the tables and changes no file. The server has the first processor, and
// this program the second. Callers do not wait for each other (package load), and hang up after a second. Capacity is
// measured first, for the mix: sign-ins cost a hundred times as much as tokens. All loads are multiples of it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"oauth-server/lab/page"
	"oauth-server/lab/process"
)

const (
	pageFile    = "pages/overload.md"
	pictureFile = "../docs/pictures/overload-success.svg"
)

func main() {
	s := full()
	controls := flag.String("controls", "off,enforce", "modes of the control to measure")
	series := flag.String("series", "mix,greedy,tokens", "series to measure")
	loads := flag.String("loads", "", "loads of the mix, times the capacity, in place of the usual ones")
	flag.DurationVar(&s.lasts, "lasts", s.lasts, "how long each load lasts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := s.choose(*controls, *series, *loads)
	if err == nil {
		err = run(ctx, s, flag.NFlag() == 0)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

// choose applies the flags.
func (s *settings) choose(controls, series, loads string) error {
	s.controls = strings.Split(controls, ",")
	if loads != "" {
		s.loads = nil
		for text := range strings.SplitSeq(loads, ",") {
			load, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return fmt.Errorf("-loads: %w", err)
			}
			s.loads = append(s.loads, load)
		}
	}
	if !strings.Contains(series, "mix") {
		s.loads = s.loads[:1]
	}
	if !strings.Contains(series, "greedy") {
		s.greedy = nil
	}
	if !strings.Contains(series, "tokens") {
		s.tokens = nil
	}
	return nil
}

func run(ctx context.Context, s settings, write bool) error {
	r, err := measure(ctx, s)
	if err != nil {
		return err
	}
	fmt.Print(r.text())
	if !write {
		return nil
	}
	if err := page.Write(pageFile, "overload", r.text()); err != nil {
		return err
	}
	return r.draw(pictureFile)
}

// cores returns the processors of the server and of the generator.
func (s *settings) cores() (server, generator int) {
	if s.anyCore {
		return process.AnyCore, process.AnyCore
	}
	return process.ServerCore, process.GeneratorCore
}
