package httpapi

import (
	"encoding/json"
	"net/http"
	"net/url"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

// Operators returns the handler for the admin address. It serves everything that s serves, with three differences.
// The metadata name the requested address as the issuer, unless Host is the issuer's: a command that knows only the admin
// address needs no other address. Forwarded headers are ignored, so a client there cannot choose the address that its
// failures count for. Requests by web pages of other origins are refused with 403, because often only the browser's own
// machine can reach the address.
func (s *Server) Operators() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", s)
	mux.HandleFunc("GET "+metadataPath, s.serveMetadataHere)
	return s.guard.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del(XForwardedFor)
		r.Header.Del(Forwarded)
		mux.ServeHTTP(w, r)
	}))
}

// serveMetadataHere serves metadata (RFC 8414) with the requested address as the issuer.
func (s *Server) serveMetadataHere(w http.ResponseWriter, r *http.Request) {
	here := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		here.Scheme = "https"
	}
	issuer := here.String()
	if u, err := parseIssuer(s.o.Issuer); err == nil && u.Host == r.Host {
		s.ServeHTTP(w, r)
		return
	}
	if u, err := parseIssuer(issuer); err != nil || u.Host != r.Host || u.Path != "" {
		http.Error(w, "the field Host is not an address", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]any{ // fails if the peer is gone
		"issuer": issuer, "token_endpoint": issuer + "/token", "response_types_supported": []string{},
		"grant_types_supported":                 []clientcfg.Grant{clientcfg.ClientCredentials},
		"token_endpoint_auth_methods_supported": []grants.AuthMethod{grants.AuthBasic, grants.AuthPost},
	})
}
