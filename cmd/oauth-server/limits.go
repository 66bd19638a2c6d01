package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/adminclient"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/tokenclient"
)

// defaultAdmin is where operators are served unless serve is told otherwise.
const defaultAdmin = "http://127.0.0.1:9097"

const limitsLong = `Look at the limits of a running server and change them, over its operator API.

A change is in force on every instance within two seconds. Before enforcement is
widened, the command says whom that would have hit in the last ten minutes, and
asks; --yes agrees beforehand, --check only says it. --reason is for the trail.

It calls as an admin client, which "oauth-server client create ops --admin" makes:
--client-id and its secret in OAUTH_CLIENT_SECRET or by --client-secret-stdin. The
token is kept like that of "oauth-server token". OAUTH_SERVER, OAUTH_ISSUER,
OAUTH_CLIENT_ID and OAUTH_TOKEN stand in for their flags.

A limit is written REQUESTS/WINDOW, with more after commas where needed:
  10/60s      10000/24h,name=daily      100/60s,frames=6,algorithm=sliding,soft=0.9`

const limitsExample = `  oauth-server limits list
  oauth-server limits set shop --user 10/60s --user 2/1s --reason "ticket 4711"
  oauth-server limits dry-run on
  oauth-server limits canary 5%`

// limits is the state of a limits command: how to reach the server, and what
// holds for every change.
type limits struct {
	*cli
	server, issuer   string
	clientID, secret string
	secretStdin      bool
	token            string
	cache            string
	noCache          bool
	timeout          time.Duration
	reason           string
	yes, check       bool
}

func newLimits(c *cli) *cobra.Command {
	l := &limits{cli: c}
	cmd := group("limits", "Look at the limits of a running server and change them",
		l.newGet(), l.newSet(), l.newUnset(), l.newList(), l.newDryRun(), l.newTrust(), l.newCanary(), l.newCandidate(),
		l.newTop(), l.newCounters(), l.newReset(), l.newAudit(), l.newInstances())
	cmd.Long, cmd.Example = limitsLong, limitsExample
	flags := cmd.PersistentFlags()
	flags.StringVar(&l.server, "server", "", "admin address of the server (default "+defaultAdmin+")")
	flags.StringVar(&l.issuer, "issuer", "", "who gives the token (default what the server names)")
	flags.StringVar(&l.clientID, "client-id", "", "the admin client")
	flags.StringVar(&l.secret, "client-secret", "", "its secret")
	flags.BoolVar(&l.secretStdin, "client-secret-stdin", false, "read the secret from standard input")
	flags.StringVar(&l.token, "token", "", "a token to use instead of asking for one")
	flags.StringVar(&l.cache, "cache", "", "file to keep the token in; by default one below the user's cache directory")
	flags.BoolVar(&l.noCache, "no-cache", false, "keep no token, reuse none")
	flags.DurationVar(&l.timeout, "timeout", 30*time.Second, "longest time that everything may take, your answer not counted")
	return cmd
}

// changes gives a command the flags that every change has.
func (l *limits) changes(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&l.reason, "reason", "", "why, for the trail")
	cmd.Flags().BoolVarP(&l.yes, "yes", "y", false, "agree beforehand that enforcement is widened")
	cmd.Flags().BoolVar(&l.check, "check", false, "only say what would come of it")
	return cmd
}

// connect completes what the flags leave open and returns the client.
func (l *limits) connect() (*adminclient.Client, error) {
	l.server = cmp.Or(l.server, l.variable("OAUTH_SERVER"), defaultAdmin)
	l.issuer = cmp.Or(l.issuer, l.variable("OAUTH_ISSUER"))
	l.clientID = cmp.Or(l.clientID, l.variable("OAUTH_CLIENT_ID"))
	l.token = cmp.Or(l.token, l.variable("OAUTH_TOKEN"))
	if err := adminclient.CheckServer(l.server); err != nil {
		return nil, usagef("--server: %w", err)
	}
	if err := l.readSecret(); err != nil {
		return nil, err
	}
	return &adminclient.Client{Server: l.server, HTTP: tokenclient.NewHTTPClient(), Issuer: l.issuer, Token: l.bearer}, nil
}

func (l *limits) readSecret() (err error) {
	if l.secretStdin {
		if l.secret != "" {
			return usagef("--client-secret and --client-secret-stdin contradict each other")
		}
		l.secretStdin = false // it can be read once
		l.secret, err = secretLine(l.in)
		return err
	}
	l.secret = cmp.Or(l.secret, l.variable("OAUTH_CLIENT_SECRET"))
	if l.token == "" && (l.clientID == "" || l.secret == "") {
		return usagef("who are you? Give --client-id and OAUTH_CLIENT_SECRET (or --client-secret-stdin) of an admin client, or --token;" +
			" oauth-server client create ID --admin makes one")
	}
	return nil
}

// bearer gets the token, as a good client does.
func (l *limits) bearer(ctx context.Context, issuer string, fresh bool) (string, error) {
	if l.token != "" {
		return l.token, nil
	}
	r := tokenclient.Request{
		Issuer: issuer, Grant: clientcfg.ClientCredentials, ClientID: l.clientID, ClientSecret: l.secret,
		CacheFile: l.cache, Force: fresh,
	}
	if l.cache == "" && !l.noCache {
		dir, err := tokenclient.DefaultCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w; name a file with --cache, or use --no-cache", err)
		}
		r.CacheDir = dir
	}
	client := &tokenclient.Client{HTTP: tokenclient.NewHTTPClient(), Now: time.Now, Notify: func(m string) { l.note("%s", m) }}
	result, err := client.Token(ctx, r)
	if err != nil {
		return "", fmt.Errorf("get a token of %s: %w", issuer, err)
	}
	return result.Token.AccessToken, nil
}

// fetch reads a resource, bounded in time.
func (l *limits) fetch(ctx context.Context, path string, query url.Values) (raw json.RawMessage, err error) {
	api, err := l.connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	_, err = api.Get(ctx, path, query, &raw)
	return raw, err
}

// show fetches a resource and shows it: as it came to scripts, to people by
// way of text.
func show[T any](ctx context.Context, l *limits, path string, query url.Values, text func(T) error) error {
	raw, err := l.fetch(ctx, path, query)
	if err != nil {
		return err
	}
	if l.output == outputJSON {
		return l.json(raw)
	}
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return text(v)
}

// policyPath and candidatePath are escaped: a client_id may hold a slash.
func policyPath(clientID string) string { return "/policies/" + url.PathEscape(clientID) }

func candidatePath(name string) string { return "/candidates/" + url.PathEscape(name) }

// notFound reports whether the server said that there is nothing.
func notFound(err error) bool {
	var p *adminclient.ProblemError
	return errors.As(err, &p) && p.NotFound()
}

// only returns the argument, empty if there is none.
func only(args []string) string { return strings.Join(args, "") }
