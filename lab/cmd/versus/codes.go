package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/oauth2"
)

// code is an authorization code and the verifier that redeems it.
type code struct{ code, verifier string }

const codesPerSession = 100 // of 120 that a session may get

// getCodes gets n codes as browsers do. Each browser signs in.
func (i *instance) getCodes(ctx context.Context, n int) (codes []code, err error) {
	const browsers = 4
	sessions := make(chan struct{}, (n+codesPerSession-1)/codesPerSession)
	for range cap(sessions) {
		sessions <- struct{}{}
	}
	close(sessions)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range browsers {
		all.Go(func() {
			for range sessions {
				some, failed := i.session(ctx)
				mu.Lock()
				codes, err = append(codes, some...), errors.Join(err, failed)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if err != nil {
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
		if "http://"+req.URL.Host != i.URL() {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	c := oauth2.Config{
		ClientID: web, RedirectURL: callback, Scopes: []string{"read"},
		Endpoint: oauth2.Endpoint{AuthURL: "http://" + i.Address + "/authorize"},
	}
	for len(codes) < codesPerSession {
		verifier := oauth2.GenerateVerifier()
		page, location, err := visit(ctx, browser, http.MethodGet, c.AuthCodeURL("state", oauth2.S256ChallengeOption(verifier)), nil)
		if err == nil && location == nil {
			fields := url.Values{"username": {user}, "password": {password}}
			for _, f := range hidden.FindAllStringSubmatch(page, -1) {
				fields.Set(html.UnescapeString(f[1]), html.UnescapeString(f[2]))
			}
			_, location, err = visit(ctx, browser, http.MethodPost, i.URL()+"/sign-in", fields)
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
