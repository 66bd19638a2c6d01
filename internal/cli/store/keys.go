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
	return command.Group("keys", "List and replace the keys that access tokens are signed with", newKeysList(c), newKeysRotate(c))
}

// onKeys is like onStore, for commands that also need the settings of the signing keys.
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
		Long: `List the signing keys, and how they are encrypted in the store. Give the secrets of
the servers, in OAUTH_KEYS_SECRET and so on, to see which of them encrypts a key:
"current" is the first of keys.secret, "second" the one after it, and "other" neither.`,
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
				k.ActiveFrom.UTC().Format(time.RFC3339), string(k.Encryption),
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

const keysRotateLong = `Make the next signing key. It is published at once and signs a day later, when
verifiers have it; the key before it is deleted when its last token has expired.
Servers do this by themselves, every tokens.key_rotation.

With --now the new key signs at once, and all others are withdrawn: servers refuse
their tokens within two seconds. Verifiers of JWTs that cache the key set accept
them until they fetch it again, five minutes later if they follow its Cache-Control.
Use it when a private key may be known to others. Refresh tokens and sessions stay.

The new key is encrypted like the one before it, so give the same secrets as to the
servers, in OAUTH_KEYS_SECRET and so on. If that secret is lost, stop all servers and
run this with a new one and --secret-lost, then start them with the new one.`

func newKeysRotate(c *command.Env) *cobra.Command {
	var now, yes, lost bool
	cmd := &cobra.Command{
		Use: "rotate", Short: "Replace the signing key, with --now at once", Long: keysRotateLong, Args: command.Takes(),
		Example: "  oauth-server keys rotate\n  oauth-server keys rotate --now",
	}
	flags := cmd.Flags()
	flags.BoolVar(&now, "now", false, "let the new key sign at once, and withdraw all others")
	flags.BoolVarP(&yes, "yes", "y", false, "confirm --now beforehand")
	flags.BoolVar(&lost, "secret-lost", false, "with --now: encrypt by keys.secret although the keys so far are encrypted by another secret")
	return onKeys(c, cmd, func(ctx context.Context, store app.Store, cfg *config.Config) error {
		if lost && !now {
			return command.Usagef("--secret-lost is for --now only")
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
		c.Note("Servers refuse every earlier access token within two seconds. Clients must get a new one.")
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
	c.Note("Every access token so far becomes invalid. Clients must get a new one.")
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
		text.WriteString("made " + k.ID + " (" + string(k.Algorithm) + "), which signs from " + k.ActiveFrom.UTC().Format(time.RFC3339) + "\n")
		if k.Encryption == keys.Plain {
			c.Note("%s is stored in clear, like the key before it.", k.ID)
		}
	}
	for _, id := range r.Withdrawn {
		text.WriteString("withdrew " + id + "\n")
	}
	return c.Answer(r, strings.TrimSuffix(text.String(), "\n"))
}
