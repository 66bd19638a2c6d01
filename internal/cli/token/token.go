package token

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/tokenclient"
	"oauth-server/internal/clientcfg"
)

// defaultIssuer is the default issuer of serve.
const defaultIssuer = "http://127.0.0.1:9096"

const tokenLong = `Get a token from an authorization server. The command caches it in a file that only you can read,
reuses it until shortly before it expires, and then refreshes it.

The endpoints come from the server's metadata. OAUTH_ISSUER, OAUTH_CLIENT_ID and OAUTH_USERNAME can
replace their flags. Other users of this machine can see a secret in a flag: use
OAUTH_CLIENT_SECRET, OAUTH_PASSWORD or the -stdin flags instead. OAUTH_CLIENT_SECRET is used only
for the client in OAUTH_CLIENT_ID.`

//nolint:gosec // G101: command lines, no credentials
const tokenExample = `  oauth-server token --grant client_credentials --client-id shop --client-secret-stdin < secret
  oauth-server token --grant authorization_code --client-id web --open`

// tokenFlags are the flags of the token command.
type tokenFlags struct {
	request             tokenclient.Request
	grant               string
	secretStdin         bool
	passwordStdin       bool
	refreshStdin        bool
	noCache, wait, open bool
	timeout             time.Duration
}

// New makes the command that gets tokens, for trying the server.
func New(c *command.Env) *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:     "token --grant GRANT --client-id ID",
		Short:   "Get a token, cache it and refresh it",
		Long:    tokenLong,
		Example: tokenExample,
		Args:    command.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, c)
		},
	}
	f.register(cmd)
	return cmd
}

func (f *tokenFlags) register(cmd *cobra.Command) {
	flags, r := cmd.Flags(), &f.request
	flags.StringVar(&r.Issuer, "issuer", "", "`URL` of the issuer, as in its metadata (default "+defaultIssuer+")")
	flags.StringVar(&f.grant, "grant", "", "client_credentials, authorization_code, refresh_token or password")
	flags.StringVar(&r.ClientID, "client-id", "", "ID of the client")
	flags.StringVar(&r.ClientSecret, "client-secret", "", "secret of the client; leave out for a public client")
	flags.BoolVar(&f.secretStdin, "client-secret-stdin", false, "read the secret from standard input")
	flags.StringArrayVar(&r.Scopes, "scope", nil, "`SCOPE` to request; repeatable")
	flags.StringVar(&r.Username, "username", "", "the user, for the password grant")
	flags.BoolVar(&f.passwordStdin, "password-stdin", false, "read the user's password from standard input")
	flags.StringVar(&r.RefreshToken, "refresh-token", "", "refresh token (default from the cache)")
	flags.BoolVar(&f.refreshStdin, "refresh-token-stdin", false, "read the refresh token from standard input")
	flags.IntVar(&r.RedirectPort, "redirect-port", 0, "port of the loopback listener for the code; 0: any free port")
	flags.StringVar(&r.RedirectPath, "redirect-path", "/callback", "path of the redirect URI, as registered")
	flags.BoolVar(&f.open, "open", false, "open the sign-in page in a browser")
	flags.StringVar(&r.CacheFile, "cache", "", "cache file of the token (default in your cache directory)")
	flags.BoolVar(&f.noCache, "no-cache", false, "do not cache the token or reuse a cached one")
	flags.BoolVar(&r.Force, "force", false, "request a new token even if the cached one is still valid")
	flags.BoolVar(&f.wait, "wait", false, "after a 429, wait for Retry-After and retry")
	flags.DurationVar(&f.timeout, "timeout", 5*time.Minute, "time limit for everything, including sign-in and waiting")
}

func (f *tokenFlags) run(cmd *cobra.Command, c *command.Env) error {
	if err := f.complete(c); err != nil {
		return err
	}
	if err := f.request.Validate(); err != nil {
		return command.Usage(err)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	result, err := f.client(c).Token(ctx, f.request)
	if err != nil {
		return f.explain(err)
	}
	return printToken(c, result)
}

// complete sets missing values from the environment, standard input and the defaults.
func (f *tokenFlags) complete(c *command.Env) error {
	r := &f.request
	r.Grant = clientcfg.Grant(f.grant)
	r.Issuer = cmp.Or(r.Issuer, c.Variable("OAUTH_ISSUER"), defaultIssuer)
	r.ClientID = cmp.Or(r.ClientID, c.Variable("OAUTH_CLIENT_ID"))
	r.Username = cmp.Or(r.Username, c.Variable("OAUTH_USERNAME"))
	r.Scopes = strings.Fields(strings.Join(r.Scopes, " "))
	if err := f.readStdin(c); err != nil {
		return err
	}
	if r.ClientID == cmp.Or(c.Variable("OAUTH_CLIENT_ID"), r.ClientID) { // otherwise the secret belongs to another client
		r.ClientSecret = cmp.Or(r.ClientSecret, c.Variable("OAUTH_CLIENT_SECRET"))
	}
	r.Password = cmp.Or(r.Password, c.Variable("OAUTH_PASSWORD"))
	return f.placeCache()
}

// readStdin reads a secret from standard input, if requested.
func (f *tokenFlags) readStdin(c *command.Env) error {
	var into []*string
	for _, from := range []struct {
		asked bool
		field *string
		flag  string
	}{
		{f.secretStdin, &f.request.ClientSecret, "client-secret"},
		{f.passwordStdin, &f.request.Password, "password"},
		{f.refreshStdin, &f.request.RefreshToken, "refresh-token"},
	} {
		if !from.asked {
			continue
		}
		if *from.field != "" {
			return command.Usagef("--%s and --%[1]s-stdin cannot be used together", from.flag)
		}
		into = append(into, from.field)
	}
	switch len(into) {
	case 0:
		return nil
	case 1:
		line, err := command.SecretLine(c.In)
		*into[0] = line
		return err
	default:
		return command.Usagef("only one of the -stdin flags can be used")
	}
}

func (f *tokenFlags) placeCache() (err error) {
	if f.noCache && f.request.CacheFile != "" {
		return command.Usagef("--cache and --no-cache cannot be used together")
	}
	if f.noCache || f.request.CacheFile != "" {
		return nil
	}
	f.request.CacheDir, err = tokenclient.DefaultCacheDir()
	if err != nil {
		return fmt.Errorf("%w; name a file with --cache, or use --no-cache", err)
	}
	return nil
}

func (f *tokenFlags) client(c *command.Env) *tokenclient.Client {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(c.ErrOut, format+"\n", args...) }
	return &tokenclient.Client{
		HTTP:   tokenclient.NewHTTPClient(),
		Now:    time.Now,
		Notify: func(message string) { say("%s", message) },
		Wait:   f.wait,
		Show: func(ctx context.Context, address string) error {
			say("Open this address to sign in:\n\n  %s\n", address)
			if f.open {
				go func() {
					if err := tokenclient.OpenBrowser(ctx, address); err != nil {
						say("%v", err)
					}
				}()
			}
			return nil
		},
	}
}

// explain adds advice to a "too many requests" error.
func (f *tokenFlags) explain(err error) error {
	var refused *tokenclient.ServerError
	if !errors.As(err, &refused) || !refused.Limited() || f.wait {
		return err
	}
	when := "later"
	if refused.RetryAfter > 0 {
		when = "in " + refused.RetryAfter.String()
	}
	return fmt.Errorf("%w; try again %s, or give --wait; an unused code or refresh token stays valid", err, when)
}
