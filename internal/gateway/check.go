package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"oauth-server/internal/gateway/tokenpath"
)

// metadataPaths are where an upstream says where its token endpoint is (OpenID Connect Discovery 1.0 section 4; RFC 8414
// section 3). Servers with several issuers have them under a path of each issuer, which is not configured here.
var metadataPaths = []string{"/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"}

const (
	checkTimeout    = 10 * time.Second
	checkAgainAfter = 5 * time.Second
	maxMetadata     = 1 << 20
)

// errAway is of an upstream that does not answer, with metadata or without.
var errAway = errors.New("no answer")

// Check asks the upstream whether the token paths are those of its token endpoint, and whether it introspects, logs
// what it finds, and returns at the end of ctx: a path that matches nothing would have every token request pass. An upstream
// that does not answer is asked again until it does, since it often starts together with the gateway, and more slowly.
func (g *Gateway) Check(ctx context.Context) error {
	g.check(ctx)
	g.checkIntrospection(ctx)
	<-ctx.Done()
	return nil
}

func (g *Gateway) check(ctx context.Context) {
	paths := slog.Any("token_path", g.o.TokenPaths)
	for said := false; ; said = true {
		answered, err := g.checkOnce(ctx, paths)
		switch {
		case ctx.Err() != nil || answered && err == nil: // in the first case it may be the stop that failed it
			return
		case answered:
			g.o.Logger.LogAttrs(ctx, slog.LevelInfo, "token_path was not checked: the upstream has no metadata at its root", paths, slog.Any("error", err))
			return
		case !said:
			g.o.Logger.LogAttrs(ctx, slog.LevelWarn, "token_path is not checked yet: the upstream does not answer, and is asked until it does", paths, slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(g.checkAgain):
		}
	}
}

// checkOnce compares the paths with that of the metadata. Its error says why there is none; answered reports whether there
// was an answer at all.
func (g *Gateway) checkOnce(ctx context.Context, paths slog.Attr) (answered bool, err error) {
	within, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for _, at := range metadataPaths {
		endpoint, bad := g.tokenEndpoint(within, at)
		answered = answered || !errors.Is(bad, errAway)
		if bad != nil {
			err = errors.Join(err, bad)
			continue
		}
		if !slices.ContainsFunc(g.paths, func(p tokenpath.Pattern) bool { return p.Match(endpoint.Path) }) {
			g.o.Logger.LogAttrs(ctx, slog.LevelWarn, "token_path does not match the token endpoint that the upstream names: its requests pass without a limit",
				paths, slog.String("token_endpoint", endpoint.String()))
		}
		return true, nil
	}
	return answered, err
}

// tokenEndpoint reads the metadata at a path of the upstream.
func (g *Gateway) tokenEndpoint(ctx context.Context, at string) (*url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.o.Upstream.JoinPath(at).String(), nil)
	if err != nil {
		return nil, err
	}
	res, err := g.tokens.RoundTrip(req)
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
		return nil, fmt.Errorf("%s names no token_endpoint", at)
	}
	return url.Parse(metadata.TokenEndpoint)
}
