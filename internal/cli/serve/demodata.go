package serve

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"time"

	"oauth-server/internal/app"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
)

// demoData holds the credentials of a demo store: a client for every grant, a public client for
// people, and a user to sign in as. All secrets are random, so a demo that others can reach has no
// well-known credentials.
type demoData struct {
	ClientID       string `json:"client_id"`
	ClientSecret   string `json:"client_secret"`
	BusyClientID   string `json:"busy_client_id"` // uses up its own limit, not the limit of the demo client
	BusySecret     string `json:"busy_client_secret"`
	PublicClientID string `json:"public_client_id"`
	AdminClientID  string `json:"admin_client_id"` // for operators
	AdminSecret    string `json:"admin_client_secret"`
	Username       string `json:"username"`
	Password       string `json:"password"`
}

// demoLimit is the number of tokens per minute, small enough to use up by hand. demoFrames keeps
// the estimate from jumping at the end of a minute: requests of the last 50 seconds count in full.
const (
	demoLimit  = 10
	demoFrames = 6
)

// demoScope is the scope of the demo clients.
const demoScope = "notes:read"

// demoRedirect matches every port (RFC 8252 7.3), so the token command can use it.
const demoRedirect = "http://127.0.0.1/callback"

// demoConfig returns the default configuration of a demo with its data in the file at path.
func demoConfig(path string) *config.Config {
	cfg := config.Default()
	cfg.DrainDelay = 0     // no load balancer sends requests
	cfg.Log.Level = "warn" // the lines to paste stay on the screen
	cfg.Store = config.Store{Embedded: &config.Embedded{Path: path}}
	limit := func(name string) []ratelimit.Limit {
		l := cfg.RateLimit.Default.User[0]
		l.Name, l.Requests, l.Frames = name, demoLimit, demoFrames
		return []ratelimit.Limit{l}
	}
	cfg.RateLimit.Default.User, cfg.RateLimit.Default.Client = limit("client-user"), limit("client")
	cfg.Scopes = map[string]string{demoScope: "Read your notes"}
	return cfg
}

// newDemo fills an empty store and returns the credentials.
func newDemo(ctx context.Context, store app.Store, now time.Time) (*demoData, error) {
	d := &demoData{
		ClientID: "demo", BusyClientID: "demo-busy", PublicClientID: "demo-app", AdminClientID: "demo-admin", Username: "ada",
		Password: strings.ToLower(rand.Text()[:12]), // 60 bits, and short because a person may have to type it
	}
	for _, made := range []struct {
		secret *string
		client clientcfg.Client
	}{
		{&d.ClientSecret, clientcfg.Client{
			ID: d.ClientID, Name: "Demo service", Grants: []clientcfg.Grant{clientcfg.ClientCredentials, clientcfg.Password, clientcfg.RefreshToken},
		}},
		{&d.BusySecret, clientcfg.Client{ID: d.BusyClientID, Name: "Busy demo service"}},
		{new(string), clientcfg.Client{ID: d.PublicClientID, Name: "Demo app", Public: true, RedirectURIs: []string{demoRedirect}}},
	} {
		var err error
		made.client.Scopes = []string{demoScope}
		if _, *made.secret, err = app.CreateClient(ctx, store, made.client, now); err != nil {
			return nil, err
		}
	}
	var err error
	if d.AdminSecret, err = newDemoOperator(ctx, store, d.AdminClientID, now); err != nil {
		return nil, err
	}
	_, err = app.CreateUser(ctx, store, d.Username, d.Password, clientcfg.NoAccess, now)
	return d, err
}

// newDemoOperator creates a client for operators and returns its secret.
func newDemoOperator(ctx context.Context, store app.Store, id string, now time.Time) (secret string, err error) {
	operator := clientcfg.Client{ID: id, Name: "Demo operator"}
	clientcfg.MakeOperator(&operator)
	_, secret, err = app.CreateClient(ctx, store, operator, now)
	return secret, err
}

// demoLine is a command to paste, with a description.
type demoLine struct {
	Title   string `json:"title"`
	Command string `json:"command"`
}

// The code verifier and challenge of RFC 7636 appendix B. A real client generates new ones each
// time.
const (
	demoVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	demoChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// Lines returns commands that show every grant. Each runs by itself in a POSIX shell with curl and
// sed, and stores cookies and tokens in the directory dir. The command for operators needs admin,
// the URL of the admin API. It is omitted if admin is empty.
func (d *demoData) Lines(issuer, admin, dir string) []demoLine {
	as, password := d.asClient(), d.passwordLine(issuer)
	lines := []demoLine{
		{"client_credentials: get a token for a machine", fmt.Sprintf("%s -d grant_type=client_credentials %s/token", as, issuer)},
		{"password: get a token with a user's password", password},
		{"refresh_token: get a token and refresh it", password +
			take("refresh_token", "refresh_token") + as + " -d grant_type=refresh_token -d @- " + issuer + "/token"},
		{"authorization_code with PKCE: sign in, consent, redeem the code", d.codeLine(issuer, dir+"/cookies")},
		{"introspect: check a token", password + take("access_token", "token") + as + " -d @- " + issuer + "/introspect"},
		{"revoke: end a token", password + take("refresh_token", "token") + as +
			` -o /dev/null -w 'HTTP %{http_code}\n' -d @- ` + issuer + "/revoke"},
		{"rate limit: 10 requests a minute, then 429 with Retry-After; RateLimit counts down", d.loopLine(issuer)},
		{"the token command (go install ./cmd/oauth-server installs it): open the address it shows and sign in", fmt.Sprintf(
			"oauth-server token --issuer %s --client-id %s --grant authorization_code --cache '%s/app.json'", issuer, d.PublicClientID, dir)},
		{"the token command as a machine", fmt.Sprintf(
			"oauth-server token --issuer %s --client-id %s --client-secret='%s' --grant client_credentials --cache '%s/machine.json'",
			issuer, d.ClientID, d.ClientSecret, dir)},
	}
	return append(lines, d.operatorLines(admin, issuer, dir)...)
}

// operatorLines returns the command for operators, or nothing if the admin API is not served.
func (d *demoData) operatorLines(admin, issuer, dir string) []demoLine {
	if admin == "" {
		return nil
	}
	return []demoLine{{"limits: show clients, their limits and denials (see oauth-server limits --help)", fmt.Sprintf(
		"oauth-server limits list --all --server %s --issuer %s --client-id %s --client-secret='%s' --cache '%s/admin.json'",
		admin, issuer, d.AdminClientID, d.AdminSecret, dir)}}
}

// GatewayLines is like Lines, for a gateway in front of the demo server.
func (d *demoData) GatewayLines(gateway, admin, dir string) []demoLine {
	as := d.asClient()
	lines := []demoLine{
		{"client_credentials: get a token from the server behind the gateway", fmt.Sprintf("%s -d grant_type=client_credentials %s/token", as, gateway)},
		{"wrong secrets: the server refuses 12 of them, and they do not count against the limit", fmt.Sprintf(
			"for i in 1 2 3 4 5 6 7 8 9 10 11 12; do curl -s -o /dev/null -w '%%{http_code} ' -u '%s:wrong' -d grant_type=client_credentials %s/token; done; echo",
			d.BusyClientID, gateway)},
		{"rate limit: 10 requests a minute, then 429 without reaching the server", d.loopLine(gateway)},
		{"password and refresh_token: the gateway recognizes the user of the refresh token", d.passwordLine(gateway) +
			take("refresh_token", "refresh_token") + as + " -d grant_type=refresh_token -d @- " + gateway + "/token"},
		{"everything else passes unchanged, including the metadata: its token_endpoint bypasses the gateway unless the server's issuer is the gateway's address", fmt.Sprintf("curl -s -w '\\n' %s/.well-known/oauth-authorization-server", gateway)},
	}
	return append(lines, d.operatorLines(admin, admin, dir)...)
}

// asClient begins a command that the demo client authenticates.
func (d *demoData) asClient() string {
	return fmt.Sprintf("curl -s -w '\\n' -u '%s:%s'", d.ClientID, d.ClientSecret)
}

// passwordLine returns a command that gets a token with the password of the user.
func (d *demoData) passwordLine(issuer string) string {
	return fmt.Sprintf("%s -d grant_type=password -d username=%s -d password=%s -d scope=%s %s/token",
		d.asClient(), d.Username, d.Password, demoScope, issuer)
}

// take passes a field of a JSON response on, as a parameter of the next request.
func take(field, as string) string {
	return fmt.Sprintf(` | sed -n 's/.*"%s": *"\([^"]*\)".*/%s=\1/p' | `, field, as)
}

// codeLine returns a command that acts as a browser and a native app: it signs in, reads the
// consent page, allows, takes the code from the redirect and redeems it.
func (d *demoData) codeLine(issuer, cookies string) string {
	request := url.Values{
		"response_type": {"code"}, "client_id": {d.PublicClientID}, "redirect_uri": {demoRedirect},
		"scope": {demoScope}, "code_challenge": {demoChallenge}, "code_challenge_method": {"S256"},
	}.Encode()
	return strings.Join([]string{
		fmt.Sprintf("curl -s -L -c '%s' --data-urlencode 'authorization=%s' -d username=%s -d password=%s %s/sign-in",
			cookies, request, d.Username, d.Password, issuer),
		`sed -n 's/.*name="binding" value="\([^"]*\)".*/binding=\1/p'`,
		fmt.Sprintf("curl -s -o /dev/null -w '%%{redirect_url}\\n' -b '%s' --data-urlencode 'authorization=%s' -d decision=allow -d @- %s/consent",
			cookies, request, issuer),
		`sed 's/.*[?&]code=\([^&]*\).*/code=\1/'`,
		fmt.Sprintf("curl -s -w '\\n' -d grant_type=authorization_code -d client_id=%s --data-urlencode redirect_uri=%s -d code_verifier=%s -d @- %s/token",
			d.PublicClientID, demoRedirect, demoVerifier, issuer),
	}, " | ")
}

// loopLine returns a command that requests two tokens more than the limit allows.
func (d *demoData) loopLine(issuer string) string {
	field := ratelimit.Fields().Limit // in lower case over HTTP/2
	return fmt.Sprintf("for i in %s; do curl -s -D - -o /dev/null -u '%s:%s' -d grant_type=client_credentials %s/token"+
		` | tr -d '\r' | sed -n -e 's/^HTTP[^ ]* //p' -e '/^%s: /p' -e '/^%s: /p' -e '/^[Rr]etry-[Aa]fter: /p' | paste -s -d ' ' -; done`,
		"1 2 3 4 5 6 7 8 9 10 11 12", d.BusyClientID, d.BusySecret, issuer, field, strings.ToLower(field))
}
