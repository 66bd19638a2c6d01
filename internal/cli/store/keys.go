package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"oauth-server/internal/app"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/config"
	"oauth-server/internal/keys"
)

// NewKeys makes the commands on signing keys.
func NewKeys(c *command.Env) *cobra.Command {
	return command.Group("keys", "List and replace the signing keys of access tokens",
		"  oauth-server keys list\n  oauth-server keys rotate", newKeysList(c), newKeysRotate(c))
}

// onKeys adds the flags for the store and the signing keys to a command, and opens the store while do runs.
func onKeys(c *command.Env, cmd *cobra.Command, do func(ctx context.Context, store app.Store, cfg *config.Config) error) *cobra.Command {
	set := command.AddSettings(cmd, func(o config.Option) bool { return o.IsStore() || o.IsKeys() })
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.LoadKeys(set.Sources(c.Environ))
		if err != nil {
			return err
		}
		return command.WithExisting(cmd.Context(), cfg, func(store app.Store) error { return do(cmd.Context(), store, cfg) })
	}
	return cmd
}

// shownKey is a signing key without its private part.
type shownKey struct {
	ID         string          `json:"kid"`
	Algorithm  keys.Algorithm  `json:"algorithm"`
	Generation int64           `json:"generation"`
	State      string          `json:"state"`
	ActiveFrom time.Time       `json:"active_from"`
	Encryption keys.Encryption `json:"encryption"`
}

// The states of a key.
const (
	keySigns    = "signs"
	keyNext     = "next"     // published, not signing yet
	keyVerifies = "verifies" // published, no longer signing
)

func newKeysList(c *command.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the signing keys, and how they are encrypted in the store", Args: command.Takes(),
		Long: `List the signing keys, and how they are encrypted in the store.

To see which secret encrypts a key, give the secrets of the servers, such as in OAUTH_KEYS_SECRET:
"current" is the first one in keys.secret, "second" the next, and "other" none of them.`,
		Example: "  oauth-server keys list\n  oauth-server keys list --mongodb-uri mongodb://localhost",
	}
	return onKeys(c, cmd, func(ctx context.Context, store app.Store, cfg *config.Config) error {
		secrets, err := cfg.Keys.Secrets()
		if err != nil {
			return err
		}
		stored, unreadable := store.Keys(ctx) // the others are shown
		if unreadable != nil && len(stored) == 0 {
			return unreadable
		}
		shown := showKeys(stored, secrets, time.Now())
		rows := [][]string{{"KID", "ALGORITHM", "GENERATION", "STATE", "SIGNS FROM", "ENCRYPTION"}}
		for _, k := range shown {
			rows = append(rows, []string{
				k.ID, string(k.Algorithm), strconv.FormatInt(k.Generation, 10), k.State,
				command.DateTime(k.ActiveFrom), string(k.Encryption),
			})
		}
		return errors.Join(c.List(shown, rows...), unreadable)
	})
}

// showKeys sorts the keys by algorithm, newest first.
func showKeys(stored []keys.Record, secrets keys.Secrets, now time.Time) []shownKey {
	slices.SortFunc(stored, func(a, b keys.Record) int {
		return cmp.Or(cmp.Compare(a.Algorithm, b.Algorithm), cmp.Compare(b.Generation, a.Generation))
	})
	shown := make([]shownKey, 0, len(stored))
	signing := map[keys.Algorithm]bool{}
	for _, k := range stored {
		state := keyVerifies
		switch {
		case k.ActiveFrom.After(now):
			state = keyNext
		case !signing[k.Algorithm]:
			state, signing[k.Algorithm] = keySigns, true
		}
		shown = append(shown, shownKey{k.ID, k.Algorithm, k.Generation, state, k.ActiveFrom, secrets.Of(k)})
	}
	return shown
}

const keysRotateLong = `Make the next signing key. It is published immediately and signs a day later, once verifiers have
it. The previous key is deleted when its last token has expired. Servers also do this themselves,
every tokens.key_rotation.

If a private key may have leaked, add --now: the new key signs immediately, and all others are
withdrawn. Servers refuse their tokens within two seconds; verifiers that cache the key set may
accept them for up to five minutes. Refresh tokens and sessions stay valid.

The new key is encrypted like the previous one: give the secrets of the servers, such as in
OAUTH_KEYS_SECRET. If they are lost, stop all servers, run this with a new secret and
--secret-lost, and start the servers with the new secret.`

func newKeysRotate(c *command.Env) *cobra.Command {
	var now, yes, lost bool
	cmd := &cobra.Command{
		Use: "rotate", Short: "Replace the signing key", Long: keysRotateLong, Args: command.Takes(),
		Example: "  oauth-server keys rotate\n  oauth-server keys rotate --now",
	}
	flags := cmd.Flags()
	flags.BoolVar(&now, "now", false, "sign with the new key immediately, and withdraw all others")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask before --now")
	flags.BoolVar(&lost, "secret-lost", false, "with --now: encrypt with keys.secret although existing keys use another secret")
	return onKeys(c, cmd, func(ctx context.Context, store app.Store, cfg *config.Config) error {
		if lost && !now {
			return command.Usagef("--secret-lost needs --now")
		}
		secrets, err := cfg.Keys.Secrets()
		if err != nil {
			return err
		}
		r := keys.Replacement{Store: store, Secrets: secrets, SecretLost: lost, Time: time.Now()}
		if !now {
			made, err := r.Ahead(ctx, keys.PublishAhead(cfg.Tokens.KeyRotation.Std()))
			return showReplaced(c, replaced{Made: showKeys(made, secrets, r.Time)}, err)
		}
		if !yes {
			if err := confirmReplacement(ctx, c, store); err != nil {
				return err
			}
		}
		made, withdrawn, err := r.Now(ctx)
		if err := showReplaced(c, replaced{showKeys(made, secrets, r.Time), ids(withdrawn)}, err); err != nil {
			return err
		}
		c.Note("Servers refuse all existing access tokens within two seconds. Clients must get new ones.")
		return nil
	})
}

// confirmReplacement explains what --now does and asks for confirmation. Without keys it asks
// nothing.
func confirmReplacement(ctx context.Context, c *command.Env, store app.Store) error {
	stored, err := store.Keys(ctx)
	switch {
	case err != nil:
		return err
	case len(stored) == 0:
		return keys.ErrNoKeys
	}
	c.Note("All existing access tokens become invalid. Clients must get new ones.")
	return c.Confirm()
}

// replaced is the output of a rotation.
type replaced struct {
	Made      []shownKey `json:"made"`
	Withdrawn []string   `json:"withdrawn,omitempty"`
}

func ids(records []keys.Record) (list []string) {
	for _, r := range records {
		list = append(list, r.ID)
	}
	return list
}

func showReplaced(c *command.Env, r replaced, err error) error {
	switch {
	case errors.Is(err, keys.ErrAhead):
		return fmt.Errorf("%w; use --now to replace the keys at once", err)
	case err != nil:
		return app.ExplainKeys(err)
	}
	var text strings.Builder
	for _, k := range r.Made {
		text.WriteString("made " + k.ID + " (" + string(k.Algorithm) + "), which signs from " + command.DateTime(k.ActiveFrom) + "\n")
		if k.Encryption == keys.Plain {
			c.Note("%s is stored unencrypted, like the previous key.", k.ID)
		}
	}
	for _, id := range r.Withdrawn {
		text.WriteString("withdrew " + id + "\n")
	}
	return c.Answer(r, strings.TrimSuffix(text.String(), "\n"))
}
