package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
)

// metadataPath is the path of the metadata (RFC 8414 3).
const metadataPath = "/.well-known/oauth-authorization-server"

// metadata is the document of RFC 8414 2.
type metadata struct {
	Issuer                        string              `json:"issuer"`
	AuthorizationEndpoint         string              `json:"authorization_endpoint"`
	TokenEndpoint                 string              `json:"token_endpoint"`
	JWKSURI                       string              `json:"jwks_uri"`
	ResponseTypes                 []string            `json:"response_types_supported"`
	ResponseModes                 []string            `json:"response_modes_supported"`
	GrantTypes                    []clientcfg.Grant   `json:"grant_types_supported"`
	TokenAuthMethods              []grants.AuthMethod `json:"token_endpoint_auth_methods_supported"`
	ServiceDocumentation          string              `json:"service_documentation"`
	RevocationEndpoint            string              `json:"revocation_endpoint"`
	RevocationAuthMethods         []grants.AuthMethod `json:"revocation_endpoint_auth_methods_supported"`
	IntrospectionEndpoint         string              `json:"introspection_endpoint"`
	IntrospectionAuthMethods      []grants.AuthMethod `json:"introspection_endpoint_auth_methods_supported"`
	CodeChallengeMethods          []string            `json:"code_challenge_methods_supported"`
	AuthorizationResponseIssParam bool                `json:"authorization_response_iss_parameter_supported"` // RFC 9207 3
}

func (s *Server) encodeMetadata() ([]byte, error) {
	confidential := []grants.AuthMethod{grants.AuthBasic, grants.AuthPost}
	all := []grants.AuthMethod{grants.AuthBasic, grants.AuthPost, grants.AuthNone}
	doc, err := json.Marshal(metadata{
		Issuer:                        s.o.Issuer,
		AuthorizationEndpoint:         s.url + "/authorize",
		TokenEndpoint:                 s.url + "/token",
		JWKSURI:                       s.url + "/.well-known/jwks.json",
		ResponseTypes:                 []string{"code"},
		ResponseModes:                 []string{"query"},
		GrantTypes:                    s.o.GrantTypes,
		TokenAuthMethods:              all,
		ServiceDocumentation:          s.url + "/",
		RevocationEndpoint:            s.url + "/revoke",
		RevocationAuthMethods:         all,
		IntrospectionEndpoint:         s.url + "/introspect",
		IntrospectionAuthMethods:      confidential,
		CodeChallengeMethods:          []string{"S256"},
		AuthorizationResponseIssParam: true,
	})
	if err != nil {
		return nil, fmt.Errorf("httpapi: encode metadata: %w", err)
	}
	return doc, nil
}

// serveMetadata handles GET metadataPath.
func (s *Server) serveMetadata(c *call) error {
	writePublic(c, s.metadata)
	return nil
}

// serveJWKS handles GET /.well-known/jwks.json (RFC 7517 5).
func (s *Server) serveJWKS(c *call) error {
	writePublic(c, s.o.Keys.JWKS())
	return nil
}

// writePublic writes JSON that is the same for every caller. Verifiers may cache it for five
// minutes. New signing keys are published well before they sign, and verifiers that check tokens
// locally accept a withdrawn key for that long.
func writePublic(c *call, body []byte) {
	h := c.Response().Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "public, max-age=300")
	c.Response().WriteHeader(http.StatusOK)
	c.write(body)
}

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
		http.Error(w, "the Host header is not an address", http.StatusBadRequest)
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
