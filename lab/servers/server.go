package servers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/process"
)

// Server is a running token endpoint.
type Server struct {
	*process.Process
	Address string            // of the token endpoint, host:port
	Admin   string            // of the admin listener, host:port
	Secrets map[string]string // by client
	Took    time.Duration     // until it was ready
}

// URL returns the URL of the server.
func (s *Server) URL() string { return "http://" + s.Address }

// Serve starts the server on the store and waits until it is ready. The core is that of [process.Start]. Flags may
// replace those that Serve sets. If it fails, nothing runs.
func (s *Store) Serve(ctx context.Context, core int, config string, flags ...string) (*Server, error) {
	return start(ctx, core, s, "serve", config, append(s.Flags(), flags...)...)
}

// Serving runs do while a server runs on the store.
func (s *Store) Serving(ctx context.Context, config string, do func(i *Server) error, flags ...string) error {
	i, err := s.Serve(ctx, process.AnyCore, config, flags...)
	if err != nil {
		return err
	}
	return errors.Join(do(i), i.Stop())
}

// Gateway starts a gateway before the token endpoint at that path of the upstream, with a store of its own in the directory.
func Gateway(ctx context.Context, core int, binary, dir, upstream, path, config string) (*Server, error) {
	s := InFile(binary, dir, "gateway")
	return start(ctx, core, s, "gateway", config, append(s.Flags(), "--upstream="+upstream, "--token-path="+path)...)
}

func start(ctx context.Context, core int, s *Store, command, config string, flags ...string) (*Server, error) {
	free, err := process.FreeAddresses(ctx, 2)
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(free[0])
	name := command + "-" + port
	file := filepath.Join(s.Dir, name+".yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	args := []string{s.Binary, command, "--config=" + file, "--listen=" + free[0], "--admin-listen=" + free[1], "--drain-delay=0s"}
	if command == "serve" {
		args = append(args, "--issuer=http://"+free[0])
	}
	i := &Server{Address: free[0], Admin: free[1], Secrets: s.Secrets}
	began := time.Now()
	if i.Process, err = process.Start(core, s.Dir, name, append(args, flags...)...); err != nil {
		return nil, err
	}
	err = i.Await(ctx, process.Answers("http://"+i.Admin+"/readyz"))
	if i.Took = time.Since(began); err != nil {
		return nil, errors.Join(err, i.Stop())
	}
	return i, nil
}

// client keeps enough connections open for all that is sent at once.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 128}, Timeout: time.Minute}

// Post sends a form to a path of the server, as a client.
func (s *Server) Post(ctx context.Context, path, id string, form url.Values) (load.Answer, error) {
	return load.Post(ctx, client, s.URL()+path, id, s.Secrets[id], form)
}

func get(ctx context.Context, address string) (load.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return load.Answer{}, err
	}
	return load.Do(client, req)
}

// Token sends a token request that must succeed.
func (s *Server) Token(ctx context.Context, id string, form url.Values) (load.Answer, error) {
	a, err := s.Post(ctx, "/token", id, form)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("%s of %s: status %d: %.300s", form.Get("grant_type"), id, a.Status, a.Body)
	}
	return a, err
}

// Own is the form with which a client asks for a token for itself.
func Own() url.Values { return url.Values{"grant_type": {"client_credentials"}} }

// SignIn is the form with which a client signs in a user.
func SignIn(user, password string) url.Values {
	return url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}}
}

// Change changes something through the admin API, with a token of the client.
func (s *Server) Change(ctx context.Context, token, method, path, body string) (load.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.Admin+"/admin/v1"+path, strings.NewReader(body))
	if err != nil {
		return load.Answer{}, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("If-Match", "*")
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	return load.Do(client, req)
}

// Request returns the bytes of a token request of the client, with that form and secret.
func (s *Server) Request(client, secret, form string) []byte {
	return load.Request(s.Address, "/token", client, secret, form)
}

// Processor returns the processor time that the server has used.
func (s *Server) Processor() (time.Duration, error) {
	times, err := process.TimesOf(s.PID())
	return times.Ran, err
}

// Metrics returns the values of /metrics by their names, with the labels.
func (s *Server) Metrics(ctx context.Context) (map[string]float64, error) {
	a, err := get(ctx, "http://"+s.Admin+"/metrics")
	if err != nil {
		return nil, err
	}
	found := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(a.Body)); lines.Scan(); {
		if i := strings.LastIndexByte(lines.Text(), ' '); i >= 0 {
			found[lines.Text()[:i]], _ = strconv.ParseFloat(lines.Text()[i+1:], 64)
		}
	}
	return found, nil
}
