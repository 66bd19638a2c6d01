package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	neturl "net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/clientcfg/redirecturi"
	"oauth-server/internal/config"
)

// maxHealthBody limits how much of the one-line answer is read, in bytes.
const maxHealthBody = 4 << 10

// errUnhealthy means that the server returned a status other than 200.
var errUnhealthy = errors.New("the server is not healthy")

// healthCheck is the command health.
type healthCheck struct {
	*command.Env
	*command.Settings
	files command.TLSFiles
}

// NewHealth makes the command for health checks in images without curl.
func NewHealth(c *command.Env) *cobra.Command {
	var url string
	var patience time.Duration
	h := &healthCheck{Env: c}
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check the health of a running server or gateway",
		Long: `Check the health of a running server or gateway. The exit status is 0 if it answers 200, and 1
otherwise.

Without --url, the command calls /healthz at the admin address. It finds the address in the same
file, environment and flags as serve and gateway, or, in a container where serve or gateway is
process 1, in the flags of that process. A server without an admin address is called at --listen.
A gateway needs one, because it passes all other requests to its upstream.

/healthz succeeds while the process runs, and /readyz while it should receive requests.`,
		Example: `  oauth-server health
  oauth-server health --config gateway.yaml
  oauth-server health --url http://127.0.0.1:9097/readyz`,
		Args: command.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			transport, _, err := h.files.Transports(c)
			if err != nil {
				return err
			}
			if url != "" {
				if u, err := neturl.Parse(url); err != nil || !redirecturi.IsHTTP(u) {
					return command.Usagef("--url: %q is not a URL, such as http://127.0.0.1:9097/readyz", url)
				}
				return showHealth(ctx, c, &http.Client{Transport: transport}, url)
			}
			own, err := h.url()
			if err != nil {
				return err
			}
			err = showHealth(ctx, c, &http.Client{Transport: toThisMachine(transport)}, own)
			if down := (*net.OpError)(nil); errors.As(err, &down) {
				err = fmt.Errorf("%w; if the server has another address, give health the same --config, --listen or --admin-listen", err)
			}
			return err
		},
	}
	h.files.Add(cmd.Flags())
	cmd.Flags().StringVar(&url, "url", "", "URL to check (default /healthz of the configured server)")
	cmd.Flags().DurationVar(&patience, "timeout", 3*time.Second, "time limit for the answer")
	h.Settings = command.AddSettings(cmd, func(config.Option) bool { return true })
	for _, o := range config.Options() { // accept all, to allow pasting the server's flags
		cmd.Flags().Lookup(o.Name).Hidden = !slices.Contains([]string{"listen", "admin-listen"}, o.Name)
	}
	return cmd
}

// url returns the health URL of the configured server.
func (h *healthCheck) url() (string, error) {
	from := h.Settings
	if len(from.Sources(nil).Flags) == 0 && from.File == "" {
		from = cmp.Or(h.running(), from)
	}
	cfg, err := config.LoadAddresses(from.Sources(h.Environ))
	if err != nil {
		return "", err
	}
	gateway := cfg.Gateway.Enabled() || from.Cmd.Name() == "gateway"
	locked := cfg.AdminClientCA != "" && cmp.Or(h.files.Cert, h.Variable("OAUTH_CERT_FILE")) == ""
	address, encrypted := cfg.AdminListen, cfg.OperatorTLS().Enabled()
	switch {
	case gateway && address == "":
		return "", command.Usagef("a gateway answers /healthz only at its admin address: set admin_listen, or give --url")
	case gateway && locked:
		return "", command.Usagef("admin_client_ca is set: give a client certificate with --cert-file and --key-file")
	case !gateway && (address == "" || locked || isSecond(cfg)):
		address, encrypted = cfg.Listen, cfg.TLS.Enabled()
	}
	scheme := "http://"
	if encrypted {
		scheme = "https://"
	}
	return scheme + reachable(address) + "/healthz", nil
}

// isSecond reports whether a server may lack the default admin address because another server on
// this machine uses it.
func isSecond(cfg *config.Config) bool {
	usual := config.Default()
	_, port, _ := net.SplitHostPort(cfg.Listen)
	_, usualPort, _ := net.SplitHostPort(usual.Listen)
	return cfg.AdminListen == usual.AdminListen && port != usualPort
}

// reachable returns the address for reaching a listener from this machine.
func reachable(listen string) string {
	host, port, _ := net.SplitHostPort(listen) // already checked
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip == netip.IPv4Unspecified() {
		host = "127.0.0.1"
	} else if err == nil && ip == netip.IPv6Unspecified() {
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

// running returns the flags of the server that is process 1, as in a container; nil if process 1 is
// another program.
func (h *healthCheck) running() *command.Settings {
	if h.Root == nil {
		return nil
	}
	line, err := fs.ReadFile(h.Root, "proc/1/cmdline")
	if err != nil || !sameFile(h.Root, "proc/1/exe", "proc/self/exe") {
		return nil
	}
	args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	servers := command.Group("oauth-server", "", "", New(&command.Env{}), NewGateway(&command.Env{}))
	servers.PersistentFlags().StringP("output", "o", "", "")
	cmd, rest, err := servers.Find(args[1:])
	if err != nil || cmd == servers || cmd.ParseFlags(rest) != nil {
		return nil
	}
	file, _ := cmd.Flags().GetString("config")
	return &command.Settings{File: file, Cmd: cmd}
}

func sameFile(root fs.FS, a, b string) bool {
	first, err := fs.Stat(root, a)
	if err != nil {
		return false
	}
	second, err := fs.Stat(root, b)
	return err == nil && os.SameFile(first, second)
}

// toThisMachine returns a transport for addresses on this machine. It does not verify the
// certificate, which is issued for the names that clients use. This is safe because a health check
// sends no secret.
func toThisMachine(transport http.RoundTripper) http.RoundTripper {
	t := transport.(*http.Transport).Clone() //nolint:forcetypeassert // see transports
	t.Proxy = nil
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.TLSClientConfig.InsecureSkipVerify = true
	return t
}

func showHealth(ctx context.Context, c *command.Env, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return command.Usage(err)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxHealthBody))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s %s", errUnhealthy, res.Status, strings.TrimSpace(string(body)))
	}
	_, err = fmt.Fprintln(c.Out, strings.TrimSpace(string(body)))
	return err
}
