package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/gateway/upstream"
)

// The paths of the metadata documents that name a server's token endpoint.
const (
	oidcMetadata  = "/.well-known/openid-configuration"
	oauthMetadata = "/.well-known/oauth-authorization-server"
)

// metadataPaths returns the paths at which the upstream may serve metadata: at the root, and for
// each issuer path that a token path may start with, after the issuer path (OpenID Connect
// Discovery 1.0 section 4) and before it (RFC 8414 section 3). Servers use both places for both
// documents. Issuer paths are cut off at the first * segment, because the value of the segment is
// unknown.
func metadataPaths(tokenPaths []string) []string {
	all := []string{oidcMetadata, oauthMetadata}
	for _, p := range tokenPaths {
		for issuer, _, _ := strings.Cut(path.Dir(p), "/*"); len(issuer) > 1; issuer = path.Dir(issuer) {
			all = append(all, issuer+oidcMetadata, oauthMetadata+issuer, issuer+oauthMetadata, oidcMetadata+issuer)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isMetadata reports whether a path may be a metadata path.
func isMetadata(path string) bool {
	return strings.Contains(path, oidcMetadata) || strings.Contains(path, oauthMetadata)
}

const (
	checkTimeout    = 10 * time.Second
	checkAgainAfter = 5 * time.Second
	maxMetadata     = 1 << 20
)

// errAway means that the upstream sent no answer at all.
var errAway = errors.New("no answer")

// Check compares the token paths with the token endpoint in the upstream's metadata, tests
// introspection, logs the results, and returns when ctx ends. A token path that matches nothing
// would let every token request pass. While the upstream does not answer, Check retries: the
// upstream often starts together with the gateway, and more slowly. If there is no metadata at the
// usual paths, Check uses the first metadata that a client requests.
func (g *Gateway) Check(ctx context.Context) error {
	checked := g.check(ctx)
	g.checkIntrospection(ctx)
	if !checked {
		g.checkDiscovered(ctx)
	}
	<-ctx.Done()
	return nil
}

// check reports whether it found metadata.
func (g *Gateway) check(ctx context.Context) bool {
	for said := false; ; said = true {
		found, err := g.checkOnce(ctx)
		switch {
		case ctx.Err() != nil || found: // a stop may also have caused the error
			return found
		case !errors.Is(err, errAway):
			g.o.Logger.LogAttrs(ctx, slog.LevelInfo, "token_path not checked yet: upstream metadata not found; checking when a client requests it",
				g.pathsAttr(), slog.Any("error", err))
			return false
		case !said:
			g.o.Logger.LogAttrs(ctx, slog.LevelWarn, "token_path not checked yet: upstream does not answer; retrying", g.pathsAttr(), slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(g.checkAgain):
		}
	}
}

// checkOnce compares the token paths with all metadata that it finds. If it finds none, err is the
// reason for the first document that was answered, or errAway if there was no answer.
func (g *Gateway) checkOnce(ctx context.Context) (found bool, err error) {
	within, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	endpoints := map[string]bool{}
	for _, at := range metadataPaths(g.o.TokenPaths) {
		endpoint, bad := g.tokenEndpoint(within, at)
		if bad != nil && (err == nil || errors.Is(err, errAway)) {
			err = bad
		}
		if bad == nil && !endpoints[endpoint.String()] {
			endpoints[endpoint.String()] = true
			g.compare(ctx, endpoint)
		}
	}
	return len(endpoints) > 0, err
}

// checkDiscovered compares the token paths with the first metadata that a client requests.
func (g *Gateway) checkDiscovered(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-g.discovered:
			within, cancel := context.WithTimeout(ctx, checkTimeout)
			endpoint, err := g.tokenEndpoint(within, at)
			cancel()
			if err == nil {
				g.compare(ctx, endpoint)
				return
			}
		}
	}
}

// compare logs a warning if no token path matches the token endpoint.
func (g *Gateway) compare(ctx context.Context, endpoint *url.URL) {
	if !g.isTokenPath(endpoint) {
		g.o.Logger.LogAttrs(ctx, slog.LevelWarn, "token_path does not match the upstream's token endpoint: its requests are not limited",
			g.pathsAttr(), slog.String("token_endpoint", endpoint.String()))
	}
}

func (g *Gateway) pathsAttr() slog.Attr { return slog.Any("token_path", g.o.TokenPaths) }

// tokenEndpoint reads the metadata at a path of the upstream and returns its token_endpoint.
func (g *Gateway) tokenEndpoint(ctx context.Context, at string) (*url.URL, error) {
	req := &upstream.Request{Method: http.MethodGet, Target: (&url.URL{Path: at}).RequestURI(), Header: http.Header{"User-Agent": {"oauth-server"}}}
	req.Host = g.setOrigin(req.Header, netip.Addr{}, false)
	res, err := g.tokens.Send(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAway, err)
	}
	defer func() { _ = res.Body.Close() }() // it was read
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", at, res.Status)
	}
	var metadata struct {
		TokenEndpoint string `json:"token_endpoint"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxMetadata)).Decode(&metadata); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	if metadata.TokenEndpoint == "" {
		return nil, fmt.Errorf("%s has no token_endpoint", at)
	}
	return url.Parse(metadata.TokenEndpoint)
}
