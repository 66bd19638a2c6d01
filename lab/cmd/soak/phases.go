package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oauth-server/internal/overload/proctime"
	"oauth-server/lab/load"
	"oauth-server/lab/process"
)

// phase is a part of the soak.
type phase struct {
	name    string
	length  time.Duration
	attacks []attackKind
	// sameAddress makes the attacks come from the address of the good clients.
	sameAddress bool
}

// phases divides the duration. The first phase measures the machine, the last one what stays after the attacks.
func phases(duration time.Duration) []phase {
	part := duration / 40
	all := []phase{{name: "no attack", length: 4 * part}}
	for _, kind := range attackKinds {
		length := 3 * part
		if kind == slowConnections || kind == signIns {
			length = 4 * part
		}
		all = append(all, phase{name: string(kind), length: length, attacks: []attackKind{kind}})
	}
	return append(all,
		phase{name: "all at once", length: 10 * part, attacks: attackKinds},
		phase{name: "all, from the same address", length: 4 * part, attacks: attackKinds, sameAddress: true},
		phase{name: "after the attacks", length: 2 * part},
	)
}

// figures holds the observations of a phase.
type figures struct {
	phase        phase
	load.Figures                               // of the good clients
	attacks      map[attackKind]map[string]int // outcomes
	used         []process.Usage               // five times a second
	cores        process.Shares
	load         float64 // cores that this program used
}

// run runs a phase: the requests of the good clients and of the attacks, while the server is observed.
func (s *soak) run(ctx context.Context, p phase) (_ figures, err error) {
	f := figures{phase: p, attacks: map[attackKind]map[string]int{}}
	streams, kinds := []load.Stream{s.good.stream(p.length)}, []attackKind{""}
	watching, end := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer end()
	for i, kind := range p.attacks {
		if kind == slowConnections {
			held := &tally{counts: map[string]int{}}
			f.attacks[kind] = held.counts
			watchers.Go(func() { s.slow(watching, held, p.from()) })
			continue
		}
		flood, err := s.flood(ctx, kind, uint64(i))
		if err != nil {
			return f, err
		}
		for _, from := range p.from() {
			streams, kinds = append(streams, load.Stream{
				Phases:   load.Steady(floodRate/float64(len(p.from())), p.length),
				Patience: patience, Connections: maxInFlight, From: []string{from}, Source: load.Repeat(flood),
			}), append(kinds, kind)
		}
	}
	watchers.Go(func() { f.used = process.Sample(watching, s.server.PID(), process.AnyCore, time.Second/5) })
	self, err := proctime.Self()
	if err != nil {
		return f, err
	}
	results, err := load.Run(ctx, load.Options{Address: s.server.Address, Core: process.AnyCore, Seed: 1}, streams...)
	selfThen, failed := proctime.Self()
	end()
	watchers.Wait()
	if err := errors.Join(err, failed); err != nil {
		return f, err
	}
	f.Figures = results[0].Between(0, p.length)
	for i, r := range results[1:] {
		f.add(kinds[i+1], r.Between(0, p.length).Statuses)
	}
	f.cores = process.Between(f.used, results[0].Began, results[0].Began.Add(p.length))
	f.load = (selfThen - self).Seconds() / p.length.Seconds()
	f.cores.Others = max(0, f.cores.Others-f.load)
	return f, nil
}

// add adds the outcomes of a flood.
func (f *figures) add(kind attackKind, statuses map[int]int) {
	if f.attacks[kind] == nil {
		f.attacks[kind] = map[string]int{}
	}
	for name, n := range named(statuses) {
		f.attacks[kind][name] += n
	}
}

// named returns outcomes by their name.
func named(statuses map[int]int) map[string]int {
	all := map[string]int{}
	for status, n := range statuses {
		name, without := map[int]string{load.HungUp: "no answer", load.Closed: "closed"}[status]
		if !without {
			name = fmt.Sprint(status)
		}
		all[name] = n
	}
	return all
}

// from returns the addresses that the attacks come from.
func (p *phase) from() (all []string) {
	if p.sameAddress {
		return []string{"127.0.0.1"}
	}
	for n := range addresses {
		all = append(all, fmt.Sprintf("127.0.1.%d", n+1))
	}
	return all
}
