package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// maxHealthBody bounds what is read of an answer, which is one line.
const maxHealthBody = 4 << 10

// errUnhealthy means that the server answered with another status than 200.
var errUnhealthy = errors.New("the server is not healthy")

// newHealth makes the command for health checks in images without curl.
func newHealth(c *cli) *cobra.Command {
	var url string
	var patience time.Duration
	var files tlsFiles
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check the health of a running server",
		Long: `Check the health of a running server. The exit status is 0 if it answers with 200,
otherwise 1.

/healthz answers while the process runs, /readyz while it should receive requests.`,
		Example: `  oauth-server health
  oauth-server health --url http://127.0.0.1:9097/readyz`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			transport, _, err := files.transports(c)
			if err != nil {
				return err
			}
			return c.health(ctx, &http.Client{Transport: transport}, url)
		},
	}
	files.add(cmd.Flags())
	cmd.Flags().StringVar(&url, "url", defaultIssuer+"/healthz", "address to check")
	cmd.Flags().DurationVar(&patience, "timeout", 3*time.Second, "time limit for the answer")
	return cmd
}

func (c *cli) health(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return &usageError{err}
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
	_, err = fmt.Fprintln(c.out, strings.TrimSpace(string(body)))
	return err
}
