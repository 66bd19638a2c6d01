package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/cli/command"
)

// tokenServer answers the metadata, and /token with answer, which gets the
// form and the client's secret.
func tokenServer(t *testing.T, answer func(form url.Values, secret string) (status int, body string)) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q}`, server.URL, server.URL+"/token")
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		_, secret, _ := r.BasicAuth()
		status, body := answer(r.PostForm, secret)
		w.Header().Set("Content-Type", "application/json")
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "37")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	return server
}

func unsignedJWT(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"ES256"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("x"))
}

const (
	opaqueToken = `{"access_token":"opaque","token_type":"Bearer","expires_in":60,"refresh_token":"r"}`
	asMachine   = "--grant client_credentials --client-id c --client-secret s"
)

// runToken gets a token from a server, unless that is nil.
func runToken(t *testing.T, s *httptest.Server, environ []string, stdin, args string) (stdout, stderr string, status int) {
	t.Helper()
	if s != nil {
		environ = append(environ, "OAUTH_ISSUER="+s.URL)
	}
	return runWith(t, environ, stdin, strings.Fields("token "+args)...)
}

// tokenSucceeds returns what the command line prints.
func tokenSucceeds(t *testing.T, s *httptest.Server, environ []string, stdin, args string) string {
	t.Helper()
	out, errs, status := runToken(t, s, environ, stdin, args)
	check.Equal(t, "exit status: "+errs, status, command.ExitOK)
	return out
}

func TestTokenPrintsResponseAndClaims(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	token := unsignedJWT(`{"sub":"shop"}`)
	s := tokenServer(t, func(form url.Values, secret string) (int, string) {
		check.Equal(t, "scope and secret", form.Get("scope")+" "+secret, "read write s")
		return 200, `{"access_token":"` + token + `","token_type":"Bearer","expires_in":3600}`
	})
	const args = asMachine + " --scope read --scope write"
	out := tokenSucceeds(t, s, nil, "", args)
	has(t, out, "newly issued, cached in "+os.Getenv("XDG_CACHE_HOME"), `"access_token": "`+token+`"`, "NOT verified", `"sub": "shop"`)
	hasNot(t, out, "claims_verified") // which the client adds for scripts

	var got map[string]any
	check.OK(t, json.Unmarshal([]byte(tokenSucceeds(t, s, nil, "", args+" --no-cache -o json")), &got))
	left, _ := got["expires_in"].(float64)
	check.Equal(t, "expires_in is an hour", math.Abs(left-3600) < 60, true)
	for name, want := range map[string]any{
		"access_token": token, "origin": "issued", "claims": map[string]any{"sub": "shop"}, "claims_verified": false, "cache_file": nil,
	} {
		check.Equal(t, name, got[name], want)
	}

	s.Close()
	has(t, tokenSucceeds(t, s, nil, "", args), "reused from the cache")
}

// TestTokenSecrets: what is exported for an operator is not sent as the secret of the client that a flag names.
func TestTokenSecrets(t *testing.T) {
	ops := []string{"OAUTH_CLIENT_ID=ops", "OAUTH_CLIENT_SECRET=hush"}
	for name, tc := range map[string]struct {
		environ     []string
		stdin, args string
		want        string
	}{
		"flag":                    {nil, "", "--client-id c --client-secret=a+b", "a%2Bb"},
		"stdin":                   {nil, " a b\r\n", "--client-id c --client-secret-stdin", "+a+b"},
		"environment":             {[]string{"OAUTH_CLIENT_SECRET= a b"}, "", "--client-id c", "+a+b"},
		"flag over environment":   {ops, "", "--client-id c --client-secret x", "x"},
		"environment's client":    {ops, "", "", "hush"},
		"the same client":         {ops, "", "--client-id ops", "hush"},
		"another client's, stdin": {ops, "x", "--client-id c --client-secret-stdin", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tokenServer(t, func(_ url.Values, secret string) (int, string) {
				check.Equal(t, "secret", secret, tc.want)
				return 200, opaqueToken
			})
			out, errs, _ := runToken(t, s, tc.environ, tc.stdin, "--grant client_credentials --no-cache "+tc.args)
			has(t, out, "is opaque")
			hasNot(t, out+errs, " a b", "hush")
		})
	}
	_, errs, status := runToken(t, nil, ops, "", "--grant client_credentials --client-id shop --no-cache")
	check.Equal(t, "status", status, command.ExitUsage)
	has(t, errs, "client-secret: client_credentials needs one")
}

func TestTokenPassword(t *testing.T) {
	s := tokenServer(t, func(form url.Values, secret string) (int, string) {
		check.Equal(t, "form", form, url.Values{"grant_type": {"password"}, "username": {"ada"}, "password": {"correct horse"}, "client_id": {"web"}})
		check.Equal(t, "secret", secret, "")
		return 200, opaqueToken
	})
	file := filepath.Join(t.TempDir(), "t.json")
	for args, environ := range map[string]string{"--client-id web": "OAUTH_CLIENT_SECRET=hush", "": "OAUTH_CLIENT_ID=web"} {
		environ := []string{"OAUTH_USERNAME=ada", environ, "OAUTH_CLIENT_ID=ops"}
		tokenSucceeds(t, s, environ, "correct horse\n", "--grant password --password-stdin --cache "+file+" "+args)
		check.OK(t, os.Remove(file))
	}
}

func TestTokenRefusals(t *testing.T) {
	const limited, denied = `{"error":"temporarily_unavailable"}`, `{"error":"invalid_client","error_description":"Nobody of that name."}`
	for name, tc := range map[string]struct {
		answer, stdin, args string
		status              int
		want                string
	}{
		"limited":         {limited, "", "", command.ExitFailed, "try again in 37s, or give --wait"},
		"wait too long":   {limited, "", "--wait --timeout 10s", command.ExitFailed, "cannot wait 37s"},
		"denied":          {denied, "", "", command.ExitFailed, "invalid_client: Nobody of that name."},
		"no grant":        {"", "", "--grant=", command.ExitUsage, "grant"},
		"unknown flag":    {"", "", "--grand x", command.ExitUsage, "--grand"},
		"an argument":     {"", "", "shop", command.ExitUsage, `unexpected argument "shop"`},
		"empty stdin":     {"", "\n", "--grant password --password-stdin", command.ExitUsage, "holds no secret"},
		"two of stdin":    {"", "a", "--password-stdin --refresh-token-stdin", command.ExitUsage, "only one of the -stdin flags"},
		"secret twice":    {"", "a", "--client-secret-stdin", command.ExitUsage, "--client-secret and --client-secret-stdin cannot be used"},
		"cache and none":  {"", "", "--cache f", command.ExitUsage, "--cache and --no-cache cannot be used"},
		"http, elsewhere": {"", "", "--issuer http://as.example", command.ExitUsage, "secrets need https"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tokenServer(t, func(url.Values, string) (int, string) {
				return map[string]int{limited: http.StatusTooManyRequests, denied: http.StatusUnauthorized}[tc.answer], tc.answer
			})
			out, errs, status := runToken(t, s, nil, tc.stdin, asMachine+" --no-cache "+tc.args)
			check.Equal(t, "status: "+errs, status, tc.status)
			has(t, errs, tc.want)
			check.Equal(t, "output", out, "")
		})
	}
}

// TestSecretGoesToTheServerOnly: the commands of operators send their secret to the address that they were given, once that
// answers as an issuer for itself, and to no other one that an answer names.
//
// Attack (operators): Stealing an operator's secret. Commands send it to the given address only,
// whatever metadata and redirects name. Also tokenclient.TestMetadataThatCannotBeTrusted.
func TestSecretGoesToTheServerOnly(t *testing.T) {
	const secret = "secret-of-the-operator"
	for name, tt := range map[string]struct {
		metadata func(own, thief string) map[string]string // nil: there are none
		redirect string                                    // path whose requests are sent to the thief
		own      bool                                      // the server itself gets it
	}{
		"no metadata":             {nil, "", false},
		"of another issuer":       {func(_, thief string) map[string]string { return document(thief, thief) }, "", false},
		"of an issuer below":      {func(own, _ string) map[string]string { return document(own+"/stolen", own) }, "", false},
		"endpoint elsewhere":      {document, "", false},
		"endpoint far away":       {func(own, _ string) map[string]string { return document(own, "https://thief.example") }, "", false},
		"redirected metadata":     {func(own, _ string) map[string]string { return document(own, own) }, "/.well-known/oauth-authorization-server", false},
		"redirected request":      {func(own, _ string) map[string]string { return document(own, own) }, "/token", true},
		"redirected call with it": {func(own, _ string) map[string]string { return document(own, own) }, "/admin/v1/clients", true},
	} {
		t.Run(name, func(t *testing.T) {
			had := func(into *bool) func(r *http.Request) {
				return func(r *http.Request) {
					_, password, _ := r.BasicAuth()
					*into = *into || password == secret || r.PostFormValue("client_secret") == secret
				}
			}
			var stolen, sent, leaked bool
			thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				had(&stolen)(r)
				leaked = leaked || r.Header.Get("Authorization") != ""
				w.WriteHeader(http.StatusNotFound)
			}))
			t.Cleanup(thief.Close)
			own := httptest.NewUnstartedServer(nil)
			own.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				had(&sent)(r)
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("WWW-Authenticate", `Bearer realm="x", issuer="`+thief.URL+`"`)
				switch {
				case r.URL.Path == tt.redirect:
					http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
				case strings.HasPrefix(r.URL.Path, "/.well-known/") && tt.metadata != nil:
					check.OK(t, json.NewEncoder(w).Encode(tt.metadata("http://"+r.Host, thief.URL)))
				case r.URL.Path == "/token":
					check.OK(t, json.NewEncoder(w).Encode(map[string]any{"access_token": "x", "token_type": "Bearer", "expires_in": 60}))
				default:
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			own.Start()
			t.Cleanup(own.Close)
			stderr := runFails(t, command.ExitFailed, "", "", "limits", "list", "--server", own.URL, "--client-id", "ops", "--client-secret", secret, "--no-cache")
			check.Equal(t, "stolen", stolen || leaked, false)
			check.Equal(t, "sent", sent, tt.own)
			if !tt.own {
				has(t, stderr, "no issuer at", "--issuer")
			}
		})
	}
}

func document(issuer, endpoint string) map[string]string {
	return map[string]string{"issuer": issuer, "token_endpoint": endpoint + "/token"}
}

// TestOperatorsGetTokensOnTheAdminAddress: also where the issuer cannot be reached, by any name of the address. Guesses count
// wherever they were made.
func TestOperatorsGetTokensOnTheAdminAddress(t *testing.T) {
	server := newManaged(t, "--issuer", "https://auth.example", "--trusted-proxies", "127.0.0.0/8", "--failed-attempts-clients-per-name", "3")
	ops := server.ops
	environ := []string{"OAUTH_SERVER=" + server.operators, "OAUTH_CLIENT_ID=ops", "OAUTH_CLIENT_SECRET=" + ops.ClientSecret + "\r\n"}
	stdout, _, _ := runWith(t, environ, "", "limits", "list", "--all", "--no-cache")
	has(t, stdout, "ops")
	_, port, _ := strings.Cut(strings.TrimPrefix(server.operators, "http://"), ":")
	runOK(t, "", "limits", "list", "--server", "http://localhost:"+port, "--client-id", "ops", "--client-secret", ops.ClientSecret, "--no-cache") // by another name
	runOK(t, "", "token", "--issuer", server.operators, "--grant", "client_credentials", "--client-id", "ops", "--client-secret", ops.ClientSecret, "--no-cache")
	for path, want := range map[string]int{"/": 404, "/authorize": 404, "/sign-in": 404, "/introspect": 404, "/revoke": 404, "/token": 405} {
		check.Equal(t, path, statusOf(t, server.operators+path), want)
	}
	guess := credentials{ClientID: "ops", ClientSecret: "wrong"}
	for _, at := range []string{server.clients, server.operators, server.clients} {
		check.Equal(t, "a guess at "+at, tokenStatus(t, at, guess), http.StatusUnauthorized)
	}
	for _, at := range []string{server.operators, server.clients} {
		check.Equal(t, "a guess too many at "+at, tokenStatus(t, at, guess), http.StatusTooManyRequests)
	}
}

// selfSigned writes a certificate for these hosts, or 127.0.0.1, that is its own CA, and its key.
func selfSigned(t *testing.T, hosts ...string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.OK(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: hosts, IsCA: true, BasicConstraintsValid: true,
	}
	if len(hosts) == 0 {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	check.OK(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	check.OK(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		check.OK(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// The limits commands reach an admin address that has HTTPS and asks for a client certificate, and get their token
// there, or from an issuer that is given, without that certificate.
func TestLimitsOverTLSWithAClientCertificate(t *testing.T) {
	cert, key := selfSigned(t)
	ownCert, ownKey := selfSigned(t)
	strangerCert, strangerKey := selfSigned(t)
	data := storeFile(t)
	ops := newClient(t, "ops --admin", "--data", data)
	server := serving(t, "serve", "--data", data, "--tls-cert-file", cert, "--tls-key-file", key, "--admin-client-ca", ownCert)
	address := "https://" + strings.TrimPrefix(server.operators, "http://")
	limits := func(environ []string, args ...string) (string, int) {
		args = append([]string{"limits", "list", "--all", "--server", address, "--client-id", "ops", "--no-cache"}, args...)
		stdout, stderr, status := runWith(t, append(environ, "OAUTH_CLIENT_SECRET="+ops.ClientSecret), "", args...)
		return stdout + stderr, status
	}
	own := []string{"--ca-file", cert, "--cert-file", ownCert, "--key-file", ownKey}
	if text, status := limits(nil, own...); status != command.ExitOK || !strings.Contains(text, "ops") {
		t.Errorf("status %d: %s", status, text)
	}
	if text, status := limits([]string{"OAUTH_CA_FILE=" + cert, "OAUTH_CERT_FILE=" + ownCert, "OAUTH_KEY_FILE=" + ownKey}); status != command.ExitOK {
		t.Errorf("by the environment: status %d: %s", status, text)
	}
	issuer := "https://" + strings.TrimPrefix(server.clients, "http://")
	for _, given := range []string{issuer, address} {
		if text, status := limits(nil, append(own, "--issuer", given)...); status != command.ExitOK {
			t.Errorf("with the issuer %s: status %d: %s", given, status, text)
		}
	}
	// In TLS 1.3 the client has finished when the server refuses its certificate, so the message varies.
	for name, tc := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"CA not trusted":       {own[2:], command.ExitFailed, "certificate"},
		"no certificate":       {own[:2], command.ExitFailed, ""},
		"one of another CA":    {[]string{"--ca-file", cert, "--cert-file", strangerCert, "--key-file", strangerKey}, command.ExitFailed, ""},
		"no such CA":           {[]string{"--ca-file", "no-such"}, command.ExitUsage, "--ca-file: open no-such"},
		"no certificate in it": {[]string{"--ca-file", key}, command.ExitUsage, "contains no PEM certificate"},
		"key missing":          {own[:4], command.ExitUsage, "--cert-file and --key-file"},
	} {
		if text, status := limits(nil, tc.args...); status != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s: status %d: %s", name, status, text)
		}
	}
	runOK(t, "", append([]string{"health", "--url", address + "/readyz"}, own...)...)
}
