// Command overload measures which requests an overloaded server answers, with admission control and without. It writes
// the tables of lab/results/overload.txt. `make bench-overload` runs it:
//
//	go -C lab build -o ../.bin/overload ./cmd/overload && cd lab && taskset -c 1 ../.bin/overload
//
// With any flag, as for a part of it, it prints the tables and changes no file.
//
// The mix is 20 % refreshes, 20 % authorization codes, 40 % client_credentials and 20 % sign-ins with a correct password, by
// 32 clients far below their limits and 32 users at 200 addresses. Requests are due at random times, and are sent then.
// Callers hang up a second later. A refresh without an answer is repeated with the same token. The capacity is the rate of
// answers while 16 requests are always under way; each load is a multiple of it. Requests during a stall of the load
// generator of 5 ms or more are left out. A load is repeated if other programs used over 5 % of a processor.
//
// The server and its hashing processes have the first processor, this program the second, and the store is in memory. Costs
// are measured without pauses, so they are minimums. A sign-in alone finds cold caches, so useful work with sign-ins comes
// out too high. Results of runs differ: p99 at twelve times the capacity was 9 to 22 ms, and mostly the garbage collector.
//
// The columns: control is overload.mode, none for off. A request is ok if a token arrived before the caller hung up. p50 and
// p99 count from the time when the request was due. Goodput is the requests that were ok, per second; a server that answers only
// cheap tokens has many times its capacity. Useful work is what these requests cost, as a share of the processor: the rest
// was spent on answers that came too late. Recovery is the time until 99 % of refreshes and codes take at most twice the
// p99 of half load. Other programs used that share of the server's processor.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"oauth-server/lab/page"
	"oauth-server/lab/process"
)

const resultsFile = "results/overload.txt"

func main() {
	s := full()
	controls := flag.String("controls", "off,enforce", "modes of the control to measure")
	series := flag.String("series", "mix,tokens", "series to measure")
	loads := flag.String("loads", "", "loads of the mix, times the capacity, in place of the usual ones")
	flag.DurationVar(&s.lasts, "lasts", s.lasts, "how long each load lasts")
	flag.Parse()
	process.Main("overload", func(ctx context.Context) error {
		if err := s.choose(*controls, *series, *loads); err != nil {
			return err
		}
		return run(ctx, s, flag.NFlag() == 0)
	})
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
	var errs []error
	for _, s := range r.sections() {
		fmt.Println(s.text)
		if write {
			errs = append(errs, page.Write(resultsFile, s.name, s.text))
		}
	}
	return errors.Join(errs...)
}

// cores returns the processors of the server and of the generator.
func (s *settings) cores() (server, generator int) {
	if s.anyCore {
		return process.AnyCore, process.AnyCore
	}
	return process.ServerCore, process.GeneratorCore
}
