package httpapi

import (
	"encoding/json"
	"net/http"
	"net/url"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

// Operators returns the handler for an address that only operators know, which serves everything that s does. Two things
// differ there. The metadata name the address that was asked, unless that is the issuer's: a command that was given
// nothing but that address sends its secret to no other one. And the sender of a request is its peer, whatever a forwarded
// header says, so that nobody who reaches the address has more guesses at a secret than elsewhere. Web pages of other
// origins are refused: the address is often one that only the browser's machine reaches.
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

// serveMetadataHere serves metadata whose issuer is the address that was asked.
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
