package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/servers"
	"oauth-server/lab/traffic"
)

// plan is what the attacking process reads from its standard input.
type plan struct {
	URL       string       `json:"url"` // of the server
	Kinds     []attackKind `json:"kinds"`
	Addresses []string     `json:"addresses"` // to connect from; empty for any
	Seed      uint64       `json:"seed"`
	Password  string       `json:"password"` // of attackUser
	Secret    string       `json:"secret"`   // of attackAPI
	Token     string       `json:"token"`    // an access token of attackAPI
	Spent     []string     `json:"spent"`    // refresh tokens of attackApp, each used before
}

// attack is the process that attacks. It is a process of its own, so that it cannot delay the
// measuring of the good clients except by taking processor time.
type attack struct {
	cmd   *exec.Cmd
	input io.Closer
	out   bytes.Buffer
}

// startAttack starts the process.
func startAttack(ctx context.Context, p plan) (*attack, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(p) //nolint:gosec // G117: for the standard input of a child, and of a server that lasts minutes
	if err != nil {
		return nil, err
	}
	a := &attack{cmd: exec.CommandContext(ctx, self, attackCommand)} //nolint:gosec // G204: this program
	a.cmd.Stdout, a.cmd.Stderr = &a.out, os.Stderr
	input, err := a.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	a.input = input
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the attack: %w", err)
	}
	if _, err := input.Write(raw); err != nil {
		return nil, errors.Join(fmt.Errorf("start the attack: %w", err), a.cmd.Process.Kill(), a.cmd.Wait())
	}
	return a, nil
}

// stop ends the attack and returns the outcomes of its requests, by kind.
func (a *attack) stop() (traffic.Summary, error) {
	if err := errors.Join(a.input.Close(), a.cmd.Wait()); err != nil {
		return nil, fmt.Errorf("stop the attack: %w", err)
	}
	var s traffic.Summary
	if err := json.Unmarshal(a.out.Bytes(), &s); err != nil {
		return nil, fmt.Errorf("read the summary of the attack: %w", err)
	}
	return s, nil
}

// attackMain is the attacking process. It attacks until its input ends, then writes the summary.
func attackMain(in io.Reader, out io.Writer) error {
	signal.Ignore(syscall.SIGINT) // goes to both processes; the other one closes the input
	decoder := json.NewDecoder(in)
	var p plan
	if err := decoder.Decode(&p); err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	return json.NewEncoder(out).Encode(p.run(ctx))
}

// run attacks until ctx ends.
func (p *plan) run(ctx context.Context) traffic.Summary {
	t := &tally{counts: traffic.Summary{}}
	dialers := p.dialers()
	var attacks sync.WaitGroup
	for i, kind := range p.Kinds {
		random := rand.New(rand.NewPCG(p.Seed, uint64(i))) //nolint:gosec // G404: the same choices in every run
		if kind == slowConnections {
			attacks.Go(func() { p.slow(ctx, t, dialers) })
			continue
		}
		attacks.Go(func() { p.flood(ctx, t, kind, httpClients(dialers), random) })
	}
	attacks.Wait()
	return t.counts
}

// dialers returns one for each address.
func (p *plan) dialers() []*net.Dialer {
	if len(p.Addresses) == 0 {
		return []*net.Dialer{{}}
	}
	all := make([]*net.Dialer, len(p.Addresses))
	for i, address := range p.Addresses {
		all[i] = &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	}
	return all
}

func httpClients(dialers []*net.Dialer) []*http.Client {
	all := make([]*http.Client, len(dialers))
	for i, d := range dialers {
		transport := &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: maxInFlight}
		all[i] = &http.Client{Transport: transport, Timeout: answerTimeout}
	}
	return all
}

// tally counts outcomes.
type tally struct {
	mu     sync.Mutex
	counts traffic.Summary
}

func (t *tally) add(kind attackKind, outcome string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts[string(kind)] == nil {
		t.counts[string(kind)] = map[string]int{}
	}
	t.counts[string(kind)][outcome]++
}

// maxInFlight bounds the requests of one flood without an answer: as many as the connections that
// repeat one right password in the e2e test of sign-ins.
const maxInFlight = 150

// names is the number of usernames that wrong passwords are tried with.
const names = 1000

// flood sends requests at a constant rate, whether or not the earlier ones are answered. With too
// many in flight a request is counted as "not sent".
func (p *plan) flood(ctx context.Context, t *tally, kind attackKind, clients []*http.Client, random *rand.Rand) {
	const interval = time.Second / floodRate
	inFlight := make(chan struct{}, maxInFlight)
	var sending sync.WaitGroup
	defer sending.Wait()
	due := time.Now()
	for i := 0; sleepUntil(ctx, due); i++ {
		due = due.Add(interval)
		if late := time.Since(due); late > time.Second {
			due = due.Add(late) // what a stalled machine has not sent is left out
		}
		select {
		case inFlight <- struct{}{}:
		default:
			t.add(kind, "not sent")
			continue
		}
		r := p.request(kind, i, random)
		client := clients[i%len(clients)]
		sending.Go(func() {
			defer func() { <-inFlight }()
			answer, err := load.Post(ctx, client, p.URL+r.path, r.id, r.secret, r.form)
			switch {
			case err == nil:
				t.add(kind, strconv.Itoa(answer.Status))
			case ctx.Err() == nil: // the end of the attack cancels requests
				t.add(kind, "no answer")
			}
		})
	}
}

// request is one request of a flood.
type request struct {
	path, id, secret string
	form             url.Values
}

// request returns request number i of a flood. The choices do not follow i modulo a small number,
// because the address that a request comes from does.
func (p *plan) request(kind attackKind, i int, random *rand.Rand) request {
	half := random.IntN(2) == 0
	switch kind {
	case signIns:
		form := servers.SignIn(attackUser, p.Password)
		if half {
			form.Set("username", fmt.Sprintf("user-%03d", random.IntN(names))) // those of good clients are among them
			form.Set("password", text(random))
		}
		return request{path: "/token", id: attackApp, form: form}
	case unknownClients:
		return request{path: "/token", id: "c-" + text(random), secret: text(random), form: servers.Own()}
	case spentTokens:
		form := refreshForm(p.Spent[i%len(p.Spent)])
		return request{path: "/token", id: attackApp, form: form}
	case introspections:
		token := p.Token
		if half {
			token = text(random)
		}
		return request{path: "/introspect", id: attackAPI, secret: p.Secret, form: url.Values{"token": {token}}}
	default: // randomTokens
		form := refreshForm(text(random))
		return request{path: "/token", id: attackApp, form: form}
	}
}

func refreshForm(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}
}

// text returns a random string of the form and length of a refresh token.
func text(random *rand.Rand) string {
	return fmt.Sprintf("%016x%016x%011x", random.Uint64(), random.Uint64(), random.Uint64()>>20)
}
