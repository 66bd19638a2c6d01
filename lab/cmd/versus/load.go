package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"oauth-server/lab/load"
)

// conn is a kept-alive connection that costs little: it shares the machine with what is measured.
type conn struct {
	net.Conn
	buffer []byte
}

func (i *instance) connect(n int) ([]*conn, error) {
	all := make([]*conn, n)
	for k := range all {
		c, err := net.Dial("tcp4", i.address) //nolint:noctx // on this machine
		if err != nil {
			return nil, err
		}
		all[k] = &conn{c, make([]byte, 16<<10)}
	}
	return all, nil
}

// token sends a token request and returns the answer.
func (i *instance) token(c *conn, client, form string) ([]byte, error) {
	_, err := fmt.Fprintf(c, "POST /token HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic %s\r\n"+
		"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		i.address, base64.StdEncoding.EncodeToString([]byte(client+":"+i.secrets[client])), len(form), form)
	if err != nil {
		return nil, err
	}
	for n := 0; ; {
		more, err := c.Read(c.buffer[n:])
		if err != nil {
			return nil, err
		}
		n += more
		status, _, body, err := load.Parse(c.buffer[:n])
		switch {
		case err != nil:
			return nil, err
		case status == http.StatusOK:
			return body, nil
		case status != 0:
			return nil, fmt.Errorf("%s: status %d: %s", client, status, body)
		}
	}
}

// rate has each connection call do without a pause, until the time is over or there is nothing more to do, and
// returns how many calls returned, and how many in a second.
func rate(all []*conn, d time.Duration, do func(c *conn, own int) (more bool, err error)) (int, float64, error) {
	var calls atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	began := time.Now()
	for own, c := range all {
		wg.Go(func() {
			for more := true; more && errs[own] == nil && time.Since(began) < d; {
				if more, errs[own] = do(c, own); more {
					calls.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return int(calls.Load()), float64(calls.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}

// underLoad runs slices of a load on each of the instances by turns. load returns how long a slice may take and what
// each connection calls. It returns how often each instance was called.
func (b *bench) underLoad(all []*instance, what string, connections int,
	load func(i *instance) (time.Duration, func(c *conn, own int) (more bool, err error)),
) (calls []int, err error) {
	calls = make([]int, len(all))
	open := make([][]*conn, len(all))
	for k, i := range all {
		if open[k], err = i.connect(connections); err != nil {
			return nil, err
		}
	}
	for slice := range b.slices {
		for k := range all {
			k = (k + slice) % len(all)
			d, do := load(all[k])
			before, failed := all[k].processor()
			n, perSecond, err := rate(open[k], d, do)
			after, failedToo := all[k].processor()
			if err := errors.Join(err, failed, failedToo); err != nil {
				return nil, err
			}
			all[k].note(fmt.Sprintf("%s per second, %d connections", what, connections), perSecond)
			all[k].note(fmt.Sprintf("%s, %d connections: processor µs for each", what, connections), float64((after-before).Microseconds())/float64(n))
			calls[k] += n
		}
	}
	for _, own := range open {
		for _, c := range own {
			err = errors.Join(err, c.Close())
		}
	}
	return calls, err
}

// signIn gets a refresh token for each of so many connections.
func (i *instance) signIn(n int) error {
	c, err := i.connect(1)
	if err != nil {
		return err
	}
	form := url.Values{"grant_type": {"password"}, "username": {user}, "password": {password}}.Encode()
	for range n {
		body, err := i.token(c[0], "legacy", form)
		if err != nil {
			return err
		}
		i.tokens = append(i.tokens, refreshToken(body))
	}
	return c[0].Close()
}

func (i *instance) refresh(c *conn, own int) (bool, error) {
	body, err := i.token(c, "legacy", "grant_type=refresh_token&refresh_token="+i.tokens[own])
	if err == nil {
		i.tokens[own] = refreshToken(body)
	}
	return true, err
}

func refreshToken(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte(`"refresh_token":"`))
	token, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(token)
}

// code is an authorization code and the verifier that redeems it.
type code struct{ code, verifier string }

const codesPerSession = 100 // of 120 that a session may get

// getCodes gets n codes as browsers do, each of which signs in.
func (i *instance) getCodes(ctx context.Context, n int) (codes []code, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	for range 4 {
		wg.Go(func() {
			for {
				mu.Lock()
				enough := len(codes) >= n || len(errs) > 0
				mu.Unlock()
				if enough {
					return
				}
				some, err := i.session(ctx)
				mu.Lock()
				if codes = append(codes, some...); err != nil {
					errs = append(errs, err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return codes[:n], nil
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)"`)

// session signs in and gets codes.
func (i *instance) session(ctx context.Context) (codes []code, err error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{Jar: jar, CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		if "http://"+req.URL.Host != "http://"+i.address {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	c := oauth2.Config{
		ClientID: "web", RedirectURL: callback, Scopes: []string{"read"},
		Endpoint: oauth2.Endpoint{AuthURL: "http://" + i.address + "/authorize"},
	}
	for len(codes) < codesPerSession {
		verifier := oauth2.GenerateVerifier()
		page, location, err := visit(ctx, browser, http.MethodGet, c.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier)), nil)
		if err == nil && location == nil {
			fields := url.Values{"username": {user}, "password": {password}}
			for _, f := range hidden.FindAllStringSubmatch(page, -1) {
				fields.Set(html.UnescapeString(f[1]), html.UnescapeString(f[2]))
			}
			_, location, err = visit(ctx, browser, http.MethodPost, "http://"+i.address+"/sign-in", fields)
		}
		switch {
		case err != nil:
			return nil, err
		case location == nil || location.Query().Get("code") == "":
			return nil, fmt.Errorf("no code at %v: %.300s", location, page)
		}
		codes = append(codes, code{location.Query().Get("code"), verifier})
	}
	browser.CloseIdleConnections()
	return codes, nil
}

// visit opens a page, and returns its text or where it leads outside of the server.
func visit(ctx context.Context, browser *http.Client, method, address string, fields url.Values) (page string, location *url.URL, err error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(fields.Encode()))
	if err != nil {
		return "", nil, err
	}
	req.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", req.URL.Scheme+"://"+req.URL.Host)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	res, err := browser.Do(req)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 == 3 {
		location, err = res.Location()
	}
	return string(text), location, err
}

func redeemForm(c code) string {
	return url.Values{"grant_type": {"authorization_code"}, "code": {c.code}, "redirect_uri": {callback}, "code_verifier": {c.verifier}}.Encode()
}
