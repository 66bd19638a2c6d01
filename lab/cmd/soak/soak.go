package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"oauth-server/lab/servers"
	"oauth-server/lab/traffic"
)

// run runs all phases and returns the figures of each. The directory is on the disk of the embedded store.
func (s *soak) run(ctx context.Context, dir string, all []phase) ([]figures, error) {
	c := &crowd{url: s.server.URL(), credentials: s.credentials}
	clients, err := c.signedIn(ctx)
	if err != nil {
		return nil, err
	}
	plans, err := s.plans(ctx, all)
	if err != nil {
		return nil, err
	}
	watching, end := context.WithCancel(ctx)
	observer := &observer{phase: &c.phase, server: s.server, dir: dir}
	var watchers sync.WaitGroup
	watchers.Go(func() { c.run(watching, clients) })
	watchers.Go(func() { observer.sample(watching) })
	watchers.Go(func() { observer.timers(watching) })
	watchers.Go(func() { observer.disk(watching) })

	results := make([]figures, len(all))
	for i, p := range all {
		c.phase.Store(int32(i))
		fmt.Printf("%s  %s for %v\n", time.Now().Format(time.TimeOnly), p.name, p.length)
		results[i] = figures{phase: p}
		if err = s.attack(ctx, plans[i], &results[i]); err != nil {
			break
		}
	}
	end()
	watchers.Wait()
	for _, m := range c.measured {
		results[m.phase].good = append(results[m.phase].good, m)
	}
	for i := range results {
		results[i].samples, results[i].late, results[i].syncs = observer.samples[i], observer.late[i], observer.syncs[i]
	}
	return results, err
}

// attack runs one phase.
func (s *soak) attack(ctx context.Context, p plan, f *figures) error {
	attackers := 0
	var a *attack
	if len(p.Kinds) > 0 {
		var err error
		if a, err = startAttack(ctx, p); err != nil {
			return err
		}
		attackers = a.cmd.Process.Pid
	}
	before, err := readUsage(s.server.PID(), attackers)
	if err == nil && !sleepUntil(ctx, time.Now().Add(f.phase.length)) {
		err = ctx.Err()
	}
	after, afterErr := readUsage(s.server.PID(), attackers)
	f.cores = after.since(before)
	err = errors.Join(err, afterErr)
	if a != nil {
		summary, stopErr := a.stop()
		f.attacks, err = summary, errors.Join(err, stopErr)
	}
	return err
}

// plans prepares the attack of each phase: it gets the tokens that the attackers hold.
func (s *soak) plans(ctx context.Context, all []phase) (plans []plan, err error) {
	token, err := s.server.Token(ctx, attackAPI, servers.Own())
	if err != nil {
		return nil, err
	}
	for i, phase := range all {
		p := plan{
			URL: s.server.URL(), Kinds: phase.attacks, Seed: uint64(i + 1),
			Password: s.credentials.Passwords[attackUser], Secret: s.credentials.Secrets[attackAPI], Token: token.AccessToken,
		}
		for n := range addresses {
			if !phase.sameAddress {
				p.Addresses = append(p.Addresses, fmt.Sprintf("127.0.1.%d", n+1))
			}
		}
		if slices.Contains(phase.attacks, spentTokens) {
			if p.Spent, err = s.spent(ctx); err != nil {
				return nil, err
			}
		}
		plans = append(plans, p)
	}
	return plans, nil
}

// families is the number of sign-ins with spent refresh tokens in one phase.
const families = 10

// spent returns refresh tokens that have been used. Of each family there are two.
func (s *soak) spent(ctx context.Context) (tokens []string, err error) {
	for range families {
		form := servers.SignIn(attackUser, s.credentials.Passwords[attackUser])
		for range 3 {
			answer, err := s.server.Token(ctx, attackApp, form)
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, answer.RefreshToken)
			form = refreshForm(answer.RefreshToken)
		}
		tokens = tokens[:len(tokens)-1] // the last one has not been used
	}
	return tokens, nil
}

// figures holds the observations of a phase.
type figures struct {
	phase   phase
	good    []measurement
	late    []time.Duration // how late timers of this process fired: the noise of the machine
	syncs   []time.Duration // how long the disk took for a page
	samples []sample
	cores   cores
	attacks traffic.Summary
}
