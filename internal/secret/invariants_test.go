package secret

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const networks = 6 // of a crowd

// crowd sends attempts with few names and sources in random order, and checks the invariants.
type crowd struct {
	*Passwords
	t      *testing.T
	rand   *rand.Rand
	rounds map[*group]int // when last seen
	group  sync.WaitGroup

	mu     sync.Mutex
	there  map[int]*member // by arrival
	now    map[string]int  // running hashes per name and source
	passed int             // at most
}

// member is an attempt of a crowd.
type member struct {
	Attempt
	alone, first bool // on arrival, no other attempt of its network, or with its name, was there
	takes        time.Duration
	begun        bool
	passed       int // later attempts of its class that were started before it; if it was not the first with its name, only those with its name
}

func newCrowd(t *testing.T, seed uint64, opts PasswordOptions) *crowd {
	t.Helper()
	c := &crowd{
		Passwords: NewPasswords(opts), t: t, rand: rand.New(rand.NewPCG(seed, 1)),
		rounds: map[*group]int{}, there: map[int]*member{}, now: map[string]int{},
	}
	c.key = func(password, _ []byte, _, _ uint32, _ uint8, n uint32) []byte {
		id, _ := strconv.Atoi(string(password))
		c.mu.Lock()
		m := c.begin(id)
		c.mu.Unlock()
		<-time.After(m.takes)
		c.mu.Lock()
		c.now[m.Name]--
		c.now[m.Source]--
		c.mu.Unlock()
		return make([]byte, n)
	}
	return c
}

// begin counts a hash as passed for all attempts that it overtakes.
func (c *crowd) begin(id int) *member {
	m := c.there[id]
	m.begun = true
	c.now[m.Name]++
	c.now[m.Source]++
	if c.now[m.Name] > perName || c.now[m.Source] > perSource {
		c.t.Errorf("%d of %s and %d from %s are hashed at once", c.now[m.Name], m.Name, c.now[m.Source], m.Source)
	}
	for earlier, o := range c.there {
		if earlier < id && !o.begun && o.Known == m.Known && o.alone && (o.first || o.Name == m.Name) {
			o.passed++
			c.passed = max(c.passed, o.passed)
		}
	}
	return m
}

// send starts an attempt with a caller that may disconnect.
func (c *crowd) send(id int) {
	network := c.rand.IntN(networks)
	m := &member{alone: true, first: true, Attempt: Attempt{
		Name: fmt.Sprint("user ", c.rand.IntN(12)), Known: c.rand.IntN(3) == 0, Password: strconv.Itoa(id),
	}}
	m.Networks = []string{fmt.Sprint("network ", network)}
	if network < 3 {
		m.Networks = append(m.Networks, fmt.Sprint("part ", network, c.rand.IntN(3)))
	}
	m.Source = fmt.Sprint("source ", network, c.rand.IntN(3))
	m.takes = time.Duration(8+c.rand.IntN(6)) * time.Millisecond
	patience := time.Duration(50+c.rand.IntN(5000)) * time.Millisecond
	c.mu.Lock()
	for _, o := range c.there {
		m.alone = m.alone && o.Networks[0] != m.Networks[0]
		m.first = m.first && o.Name != m.Name
	}
	c.there[id] = m
	c.mu.Unlock()
	c.group.Go(func() {
		ctx, cancel := context.WithTimeout(c.t.Context(), patience)
		defer cancel()
		_ = c.RejectAttempt(ctx, m.Attempt)
		c.mu.Lock()
		delete(c.there, id)
		c.mu.Unlock()
	})
	synctest.Wait()
}

// look checks the groups of all waiting attempts.
func (c *crowd) look() {
	c.queue.mu.Lock()
	defer c.queue.mu.Unlock()
	for s := range c.queue.waiting {
		q := &c.queue.waiting[s]
		counts, within := map[*group]int{}, map[*group]int{}
		for _, w := range q.waiting {
			for _, l := range w.path {
				counts[l]++
			}
		}
		for key, l := range q.groups {
			within[l.in]++
			if l.in != &q.root && q.groups[l.in.groupKey] != l.in {
				c.t.Errorf("%s is in a group that was forgotten", key.name)
			}
			if l.count != counts[l] || l.next > l.in.round+classes[unknown].stride {
				c.t.Errorf("%s has %d attempts and is next in round %d, want %d and at most the next after %d", key.name, l.count, l.next, counts[l], l.in.round)
			}
			c.grows(l)
		}
		for in, n := range within {
			if in.groups != n {
				c.t.Errorf("%s has %d groups, want %d", in.name, in.groups, n)
			}
		}
		c.grows(&q.root)
	}
	for _, counts := range c.queue.all.count[:hashing] {
		if max(counts[unknown], counts[known]) > c.queue.room {
			c.t.Errorf("%v wait, of each class, with room for %d", counts, c.queue.room)
		}
	}
	if n := c.queue.all.hashing(); n > c.queue.atOnce {
		c.t.Errorf("%d are hashed at once", n)
	}
}

func (c *crowd) grows(l *group) {
	if l.round < c.rounds[l] {
		c.t.Errorf("the round of %q went back from %d to %d", l.name, c.rounds[l], l.round)
	}
	c.rounds[l] = l.round
}

// TestInvariants checks the invariants with a crowd that leaves nothing idle for long.
func TestInvariants(t *testing.T) {
	for seed := range uint64(4) {
		for _, room := range []int{20, 1000} {
			t.Run(fmt.Sprint("seed ", seed, ", room ", room), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCrowd(t, seed, PasswordOptions{Concurrency: 1 + int(seed)*2, Queue: room})
					for id := range 1000 {
						c.send(id)
						c.look()
						if c.rand.IntN(20) > 0 { // sometimes several arrive at once
							<-time.After(time.Duration(c.rand.IntN(22)) * time.Millisecond / time.Duration(1+seed*2))
						}
					}
					c.group.Wait()
					// One attempt of each network held back, and in the queue, plus the hashes that
					// run while others with the name do.
					if most := 3*networks + 2*c.queue.atOnce; c.passed > most {
						t.Errorf("%d that came later were hashed before one, want at most %d", c.passed, most)
					}
					wantIdle(t, c.Passwords)
				})
			})
		}
	}
}
