// Command peer is a token endpoint that a user could have in our place: ory/fosite, go-oauth2, or a handler that does
// the least there is to do. Each signs access tokens by ES256, knows one client with a secret of 256 random bits,
// stores what it stores in memory, and logs nothing. Its garbage collector has the floor that ours has: without one, a
// heap of a few megabytes is collected all the time.
//
//	peer NAME LISTEN CLIENT_ID CLIENT_SECRET [UPSTREAM]
//
// As a reverse-proxy it forwards to an upstream, which a gateway is compared with.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"oauth-server/internal/overload/heapfloor"
)

// peer is what a token endpoint is made from.
type peer struct {
	issuer, id, secret, upstream string
	key                          *ecdsa.PrivateKey
}

var peers = map[string]func(p *peer) (http.HandlerFunc, error){"bare": bare, "fixed": fixed, "fosite": fositeServer, "go-oauth2": goOAuth2, "reverse-proxy": reverseProxy}

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	defer heapfloor.Choose(os.LookupEnv, os.DirFS("/"), false).Keep(100)()
	if len(args) < 4 || peers[args[0]] == nil {
		return fmt.Errorf("%q: want NAME LISTEN CLIENT_ID CLIENT_SECRET [UPSTREAM]", args)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	token, err := peers[args[0]](&peer{issuer: "http://" + args[1], id: args[2], secret: args[3], upstream: strings.Join(args[4:], ""), key: key})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", token)
	mux.HandleFunc("GET /metrics", allocations)
	server := &http.Server{Addr: args[1], Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

func reverseProxy(p *peer) (http.HandlerFunc, error) {
	upstream, err := url.Parse(p.upstream)
	if err != nil {
		return nil, err
	}
	forward := httputil.NewSingleHostReverseProxy(upstream)
	forward.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	return forward.ServeHTTP, nil
}

// allocations reports the allocations so far, under the names of Prometheus's client.
func allocations(w http.ResponseWriter, _ *http.Request) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	_, _ = fmt.Fprintf(w, "go_memstats_mallocs_total %d\ngo_memstats_alloc_bytes_total %d\n", m.Mallocs, m.TotalAlloc)
}
