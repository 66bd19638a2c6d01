package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"oauth-server/internal/overload/proctime"
	"oauth-server/lab/traffic"
)

// soak runs all phases and returns the figures of each.
func (w *world) soak(ctx context.Context) ([]figures, error) {
	c := &crowd{
		url: w.url, credentials: w.credentials,
		interval: time.Duration(float64(time.Second) / w.goodRate),
	}
	clients, err := c.signedIn(ctx, w.good)
	if err != nil {
		return nil, err
	}
	all := phases(w.duration, w.only)
	plans, err := w.plans(ctx, all)
	if err != nil {
		return nil, err
	}
	watching, end := context.WithCancel(ctx)
	observer := &observer{phase: &c.phase, pid: w.server.PID(), metrics: w.metrics, dir: w.dir}
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
		if err = w.attack(ctx, plans[i], &results[i]); err != nil {
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
func (w *world) attack(ctx context.Context, p plan, f *figures) error {
	attackers := 0
	var a *attack
	if len(p.Kinds) > 0 {
		var err error
		if a, err = startAttack(ctx, p); err != nil {
			return err
		}
		attackers = a.cmd.Process.Pid
	}
	before, err := readUsage(w.server.PID(), attackers)
	if err == nil && !sleepUntil(ctx, time.Now().Add(f.phase.length)) {
		err = ctx.Err()
	}
	after, afterErr := readUsage(w.server.PID(), attackers)
	f.cores = after.since(before)
	err = errors.Join(err, afterErr)
	if a != nil {
		summary, stopErr := a.stop()
		f.attacks, err = summary, errors.Join(err, stopErr)
	}
	return err
}

// plans prepares the attack of each phase: it gets the tokens that the attackers hold.
func (w *world) plans(ctx context.Context, all []phase) ([]plan, error) {
	token, err := w.post(ctx, url.Values{"grant_type": {"client_credentials"}}, attackAPI)
	if err != nil {
		return nil, err
	}
	plans := make([]plan, len(all))
	for i, phase := range all {
		p := plan{
			URL: w.url, Kinds: phase.attacks, Connections: w.connections, Rate: w.rate, Seed: w.seed + uint64(i),
			Password: w.credentials.Passwords[attackUser], Secret: w.credentials.Secrets[attackAPI], Token: token.AccessToken,
		}
		for n := range w.addresses {
			if !phase.sameAddress {
				p.Addresses = append(p.Addresses, fmt.Sprintf("127.0.1.%d", n+1))
			}
		}
		if p.Spent, err = w.spent(ctx, phase); err != nil {
			return nil, err
		}
		plans[i] = p
	}
	return plans, nil
}

// families is the number of refresh families whose spent tokens are presented in one phase.
const families = 10

// spent returns refresh tokens that have been used. Of each family there are two.
func (w *world) spent(ctx context.Context, p phase) (tokens []string, err error) {
	for _, kind := range p.attacks {
		for n := 0; kind == spentTokens && n < families; n++ {
			form := url.Values{"grant_type": {"password"}, "username": {attackUser}, "password": {w.credentials.Passwords[attackUser]}}
			for range 3 {
				answer, err := w.post(ctx, form, attackApp)
				if err != nil {
					return nil, err
				}
				tokens = append(tokens, answer.RefreshToken)
				form = url.Values{"grant_type": {"refresh_token"}, "refresh_token": {answer.RefreshToken}}
			}
			tokens = tokens[:len(tokens)-1] // the last one has not been used
		}
	}
	return tokens, nil
}

// post sends a token request that must succeed.
func (w *world) post(ctx context.Context, form url.Values, id string) (tokenAnswer, error) {
	answer, err := post(ctx, http.DefaultClient, w.url+"/token", form, id, w.credentials.Secrets[id], false)
	if err == nil && answer.status != http.StatusOK {
		err = fmt.Errorf("%s of %s: %d %s", form.Get("grant_type"), id, answer.status, answer.Error)
	}
	return answer, err
}

// figures are what was observed in a phase.
type figures struct {
	phase   phase
	good    []measurement
	late    []time.Duration // how late timers of this process fired: the noise of the machine
	syncs   []time.Duration // how long the disk took for a page
	samples []sample
	cores   usage
	attacks traffic.Summary
}

// usage is processor time, as a number of cores after [usage.since].
type usage struct {
	at                               time.Time
	server, attackers, self, machine float64
	waited                           float64 // by the server, for a processor
}

func readUsage(server, attackers int) (u usage, err error) {
	u.at = time.Now()
	pids := map[int]*float64{server: &u.server, os.Getpid(): &u.self}
	if attackers != 0 {
		pids[attackers] = &u.attackers
	}
	for pid, seconds := range pids {
		if *seconds, err = processSeconds(pid); err != nil {
			return u, err
		}
	}
	threads, err := proctime.Of(server)
	if err != nil {
		return u, err
	}
	u.waited = threads.Waited.Seconds()
	u.machine, err = machineSeconds()
	return u, err
}

func (u usage) since(before usage) usage {
	took := u.at.Sub(before.at).Seconds()
	if took <= 0 {
		return usage{}
	}
	return usage{
		server: (u.server - before.server) / took, attackers: (u.attackers - before.attackers) / took,
		self: (u.self - before.self) / took, machine: (u.machine - before.machine) / took,
		waited: (u.waited - before.waited) / took,
	}
}

// others is what is neither the server nor the soak.
func (u usage) others() float64 { return max(u.machine-u.server-u.attackers-u.self, 0) }
