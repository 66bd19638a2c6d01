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

// maxHealthBody bounds what is read of an answer; it is a line.
const maxHealthBody = 4 << 10

// errUnwell is the answer of a server that should not be sent requests.
var errUnwell = errors.New("not well")

// newHealth is for health checks in places where there is no curl: an image of
// nothing but this binary.
func newHealth(c *cli) *cobra.Command {
	var url string
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a running server whether it is well",
		Long: `Ask a running server whether it is well: exit status 0 if it is, 1 if not.

/healthz says that the process answers, /readyz that it should be sent requests.`,
		Example: `  oauth-server health
  oauth-server health --url http://127.0.0.1:9097/readyz`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			return c.health(ctx, url)
		},
	}
	cmd.Flags().StringVar(&url, "url", defaultIssuer+"/healthz", "what to ask")
	cmd.Flags().DurationVar(&patience, "timeout", 3*time.Second, "longest time to wait for an answer")
	return cmd
}

func (c *cli) health(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return &usageError{err}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxHealthBody))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s %s", errUnwell, res.Status, strings.TrimSpace(string(body)))
	}
	_, err = fmt.Fprintln(c.out, strings.TrimSpace(string(body)))
	return err
}
