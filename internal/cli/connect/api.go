package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/admin/adminlocal"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/tokenclient"
	"oauth-server/internal/clientcfg"
)

// DefaultAdmin is the default admin address of serve.
const DefaultAdmin = "http://127.0.0.1:9097"

// API are the flags of commands that use the admin API: its address and the caller's
// credentials.
type API struct {
	*command.Env
	TLS              command.TLSFiles
	tokens           *http.Client // for requests to the issuer; made by Connect
	Server, issuer   string
	clientID, secret string
	secretStdin      bool
	token            string
	cache            string
	noCache          bool
	Timeout          time.Duration
	Reason           string // of a change
	confirmed        string // client or user that may be changed even if that locks operators out
	saidAge          bool
	local            *adminlocal.Access // of the server, if found by its data file

	api  *adminclient.Client // made by Connect
	mu   sync.Mutex          // guards kept
	kept *tokenclient.Token  // shared by all calls of this process
}

// addressFlag is a string flag that rejects an empty value. An empty value usually comes from an
// unset shell variable, and would select another server or store.
type addressFlag string

// String implements pflag.Value.
func (f *addressFlag) String() string { return string(*f) }

// Type implements pflag.Value.
func (*addressFlag) Type() string { return "string" }

// Set implements pflag.Value.
func (f *addressFlag) Set(s string) error {
	if s == "" {
		return errors.New("it is empty; give an address such as " + DefaultAdmin + ", or leave the flag out")
	}
	*f = addressFlag(s)
	return nil
}

// Add adds the flags. server is the usage text of --server.
func (l *API) Add(flags *pflag.FlagSet, server string) {
	flags.Var((*addressFlag)(&l.Server), "server", server)
	flags.StringVar(&l.issuer, "issuer", "", "issuer to get the token from; it receives the secret (default the admin address)")
	l.TLS.Add(flags)
	flags.StringVar(&l.clientID, "client-id", "", "ID of the admin client")
	flags.StringVar(&l.secret, "client-secret", "", "secret of the admin client")
	flags.BoolVar(&l.secretStdin, "client-secret-stdin", false, "read the secret from standard input")
	flags.StringVar(&l.token, "token", "", "access token to use instead of requesting one")
	flags.StringVar(&l.cache, "cache", "", "cache file of the token (default in your cache directory)")
	flags.BoolVar(&l.noCache, "no-cache", false, "keep the token in memory only")
	flags.DurationVar(&l.Timeout, "timeout", 30*time.Second, "time limit for each call, including getting a token")
	command.InTopic(command.Connecting, flags, "issuer", "client-id", "client-secret", "client-secret-stdin", "token", "cache", "no-cache", "timeout")
}

// AddReason adds the flag for the reason of a change to a command.
func (l *API) AddReason(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.Reason, "reason", "", "reason for the change, kept in the audit trail")
}

// Connect completes the flags from the environment and the defaults and returns the client, always
// the same one. The error is about the command line: see [command.Usage].
func (l *API) Connect() (*adminclient.Client, error) {
	if l.api != nil {
		return l.api, nil
	}
	l.Server = cmp.Or(l.Server, l.Variable("OAUTH_SERVER"), DefaultAdmin)
	l.issuer = cmp.Or(l.issuer, l.Variable("OAUTH_ISSUER"))
	l.clientID = cmp.Or(l.clientID, l.Variable("OAUTH_CLIENT_ID"))
	l.token = cmp.Or(l.token, l.Variable("OAUTH_TOKEN"))
	if err := adminclient.CheckServer(l.Server); err != nil {
		return nil, command.Usagef("--server: %w", err)
	}
	if err := l.readSecret(); err != nil {
		return nil, err
	}
	calls := tokenclient.NewHTTPClient()
	calls.Timeout = l.Timeout
	l.tokens = tokenclient.NewHTTPClient()
	var err error
	if calls.Transport, l.tokens.Transport, err = l.TLS.Transports(l.Env); err != nil {
		return nil, err
	}
	if l.local != nil {
		calls.Transport = l.local.Transport(calls.Transport)
	}
	if l.issuer == "" || l.issuer == strings.TrimRight(l.Server, "/") { // the issuer may require the client certificate
		l.tokens.Transport = calls.Transport
	}
	l.api = &adminclient.Client{
		Server: l.Server, HTTP: calls, Issuer: l.issuer, Token: l.bearer, Timeout: l.Timeout, Aged: l.aged, Reason: l.Reason, Confirmed: l.confirmed,
	}
	return l.api, nil
}

// aged warns, once, that an answer may not show the newest state.
func (l *API) aged(age time.Duration) {
	if !l.saidAge {
		l.Note("The server cannot reach its store. The state shown is from %s.", command.Ago(age))
	}
	l.saidAge = true
}

func (l *API) readSecret() (err error) {
	if l.secretStdin {
		if l.secret != "" {
			return command.Usagef("--client-secret and --client-secret-stdin cannot be used together")
		}
		l.secretStdin = false // standard input can be read once only
		l.secret, err = command.SecretLine(l.In)
		return err
	}
	l.secret = cmp.Or(l.secret, l.Variable("OAUTH_CLIENT_SECRET"))
	if l.token == "" && (l.clientID == "" || l.secret == "") {
		return command.Usagef("no credentials: give --client-id and OAUTH_CLIENT_SECRET (or --client-secret-stdin), or --token;" +
			" oauth-server client create ID --admin creates an admin client")
	}
	return nil
}

// bearer returns the token for the API. It reuses the token in memory or in the cache unless that was
// refused or expires soon. Of several calls with a refused token, one requests another.
func (l *API) bearer(ctx context.Context, issuer, refused string) (string, error) {
	if l.token != "" {
		return l.token, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept.Fresh(time.Now()) && l.kept.AccessToken != refused {
		return l.kept.AccessToken, nil
	}
	r := tokenclient.Request{
		Issuer: issuer, Grant: clientcfg.ClientCredentials, ClientID: l.clientID, ClientSecret: l.secret,
		CacheFile: l.cache, Force: refused != "",
	}
	if l.cache == "" && !l.noCache {
		r.CacheDir, _ = tokenclient.DefaultCacheDir() // without a cache directory, as in a container without HOME, nothing is cached
	}
	client := &tokenclient.Client{HTTP: l.tokens, Now: time.Now, Notify: func(m string) { l.Note("%s", m) }}
	result, err := client.Token(ctx, r)
	if r.CacheDir != "" && errors.Is(err, tokenclient.ErrNoPlace) { // as when HOME is read-only
		r.CacheDir = ""
		result, err = client.Token(ctx, r)
	}
	switch {
	case err == nil:
	case l.issuer == "" && errors.Is(err, tokenclient.ErrNoIssuer):
		return "", fmt.Errorf("no issuer at %s: %w; give the issuer's address with --issuer or OAUTH_ISSUER",
			issuer, err)
	default:
		return "", fmt.Errorf("get a token from %s: %w", issuer, err)
	}
	l.kept = &result.Token
	return result.Token.AccessToken, nil
}
