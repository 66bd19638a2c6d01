package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"oauth-server/internal/overload/proctime"
	"oauth-server/lab/process"
)

// instance is a running server.
type instance struct {
	*process.Process
	url, admin string
	took       time.Duration // until it was ready

	stop chan struct{}
	done sync.WaitGroup
	peak resident // when it was greatest
}

// longestStart is how long a server may take to be ready.
const longestStart = 3 * time.Minute

// serverConfig leaves no limit that this program would reach.
const serverConfig = `rate_limit: { default: { user: [ { name: high, requests: 100000000, window: 60s } ] } }
failed_attempts: { clients: { per_address: 1000000, per_name: 1000000 } }
passwords: { sign_ins_per_minute: 1000000 }`

// serve starts a server and waits until it is ready.
func (s *store) serve(ctx context.Context) (*instance, error) {
	file := filepath.Join(s.dir, "oauth-server.yaml")
	if err := os.WriteFile(file, []byte(serverConfig), 0o600); err != nil {
		return nil, err
	}
	free, err := process.FreeAddresses(ctx, 2)
	if err != nil {
		return nil, err
	}
	i := &instance{url: "http://" + free[0], admin: "http://" + free[1], stop: make(chan struct{})}
	args := []string{
		s.binary, "serve", "--config=" + file, "--listen=" + free[0], "--admin-listen=" + free[1],
		"--issuer=http://127.0.0.1:9096", "--log-level=warn",
	}
	began := time.Now()
	if i.Process, err = process.Start(s.dir, "server-"+free[0], nil, append(args, s.flags()...)...); err != nil {
		return nil, err
	}
	i.done.Go(i.watch)
	err = i.AwaitWithin(ctx, i.url+"/readyz", longestStart)
	i.took = time.Since(began)
	if err != nil {
		log, _ := os.ReadFile(i.Log())
		return nil, errors.Join(fmt.Errorf("%w: %s", err, lastLine(string(log))), i.end())
	}
	return i, nil
}

// lastLine returns the line that says why a process has ended.
func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return lines[len(lines)-1]
}

// serveAll starts instances, one after the other. If it fails, none runs.
func (s *store) serveAll(ctx context.Context, n int) (all []*instance, err error) {
	for range n {
		i, err := s.serve(ctx)
		if err != nil {
			return nil, errors.Join(err, endAll(all))
		}
		all = append(all, i)
	}
	return all, nil
}

// watch looks at the memory of the process, for the parts of it at the peak.
func (i *instance) watch() {
	for {
		select {
		case <-i.stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		if r, err := readResident(i.PID()); err == nil && r.now >= i.peak.now {
			i.peak = r
		}
	}
}

// end stops the server.
func (i *instance) end() error {
	close(i.stop)
	i.done.Wait()
	return i.Stop()
}

func endAll(all []*instance) error {
	var errs []error
	for _, i := range all {
		errs = append(errs, i.end())
	}
	return errors.Join(errs...)
}

// processorOfAll is the processor time of all instances, in seconds.
func processorOfAll(all []*instance) (sum float64, err error) {
	for _, i := range all {
		used, err := proctime.Of(i.PID())
		if err != nil {
			return 0, err
		}
		sum += used.Ran.Seconds()
	}
	return sum, nil
}

// spent is the processor time of each instance, in seconds, while do runs, and how long that took.
func spent(all []*instance, do func() error) (processor, elapsed float64, err error) {
	before, err := processorOfAll(all)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return 0, 0, err
	}
	elapsed = time.Since(began).Seconds()
	after, err := processorOfAll(all)
	return (after - before) / float64(len(all)), elapsed, err
}

// credentials holds the ID and secret of a registered client.
type credentials struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
}

// register registers a client with the command for that.
func (s *store) register(ctx context.Context, args ...string) (made credentials, err error) {
	// yes: this release asks before it makes a data file; the one before has no flag for it.
	out, err := s.command(ctx, "y\n", append([]string{"client", "create", "--output=json"}, args...)...)
	if err != nil {
		return made, err
	}
	return made, json.Unmarshal(out, &made)
}

// tokens is an answer of the token endpoint.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

// token sends a token request and returns its status.
func (i *instance) token(ctx context.Context, as credentials, form url.Values) (t tokens, status int, err error) {
	req, err := i.tokenRequest(ctx, as, form)
	if err != nil {
		return t, 0, err
	}
	status, err = answer(req, &t)
	return t, status, err
}

// ownToken asks for a token for the client itself.
var ownToken = url.Values{"grant_type": {"client_credentials"}}

func (i *instance) tokenRequest(ctx context.Context, as credentials, form url.Values) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, i.url+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(as.ID, as.Secret)
	return req, nil
}

// client keeps enough connections open for all that this program sends at once.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}, Timeout: time.Minute}

// answer sends a request and reads the answer into v if it is 200.
func answer(req *http.Request, v any) (status int, err error) {
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusOK && v != nil {
		err = json.NewDecoder(res.Body).Decode(v)
	}
	_, rest := io.Copy(io.Discard, res.Body)
	return res.StatusCode, errors.Join(err, rest)
}
