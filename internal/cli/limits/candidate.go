package limits

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/clientcfg"
)

func (l *limits) newCandidate() *cobra.Command {
	cmd := command.Group("candidate", "Try limits beside the live ones, without enforcing them",
		"  oauth-server limits candidate set shop --user 5/60s\n  oauth-server limits candidate promote shop",
		l.newCandidateSet(), l.newCandidatePromote())
	cmd.Long = `Try limits beside the live ones, without enforcing them.

A candidate has its own counters, shared by all instances. "limits get --candidate" shows
what it would have denied, "promote" makes it live, and "limits unset --candidate" ends the
trial. Without CLIENT, the commands apply to the default limits.`
	return cmd
}

// overCandidate says what becomes of requests over limits that are tried.
const overCandidate = `Add --over-limit, --max-wait or --ban to try another handling of requests over the limits;
repeat the live limits to try only that. --criticality applies only once the candidate is
promoted.`

func (l *limits) newCandidateSet() *cobra.Command {
	var f limitFlags
	var note, file string
	cmd := &cobra.Command{
		Use: "set [CLIENT]", Short: "Try limits beside the live ones", Args: command.Takes("[CLIENT]"),
		Long: "Try limits beside the live ones, in place of an existing candidate. Without CLIENT, they are\ntried as default limits.\n\n" +
			"With --file, read the limits of the client from a file of limits, or those for all clients if\nit has none. \"simulate --write\" writes such a file.\n\n" +
			overCandidate,
		Annotations: map[string]string{command.TopicKey: command.LimitsTopic},
		Example: "  oauth-server limits candidate set shop --user 5/60s\n" +
			"  oauth-server limits candidate set shop --user 5/60s --ban denials=20,for=5m\n" +
			"  oauth-server limits candidate set --file found.yaml",
	}
	l.register(cmd, &f)
	RegisterOver(cmd)
	cmd.Flags().StringVarP(&file, "file", "f", "", "`FILE` to read the limits from; - for standard input")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml") // fails only for a missing flag
	cmd.Flags().StringVar(&note, "note", "", "note for other operators")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		doc := map[string]any{}
		if err := f.parse(doc); err != nil {
			return err
		}
		switch {
		case file != "" && (len(doc) > 0 || f.preset != ""):
			return command.Usagef("limits candidate set: --file cannot be used together with flags for limits")
		case file != "":
			if err := l.addFile(file, only(args), doc); err != nil {
				return err
			}
		case len(doc) == 0 && f.preset == "":
			return command.Usagef("limits candidate set: no limits to try: give --limit, --user, --client, --total, --source, --preset or --file")
		}
		if err := overInto(cmd, doc); err != nil {
			return err
		}
		if err := l.addPreset(cmd.Context(), &f, doc); err != nil {
			return err
		}
		doc["note"] = note
		of := candidate(only(args))
		return l.perform(cmd.Context(), of, http.MethodPut, doc, of.set)
	}
	return l.changes(cmd)
}

// addFile sets the lists of doc to the lists that a file of limits has for a client, or else for
// all clients.
func (l *limits) addFile(path, client string, doc map[string]any) error {
	name, text, err := syntax.ReadFile(l.In, path)
	if err != nil {
		return err
	}
	file, err := syntax.ParseFile(name, text)
	if err != nil {
		return err
	}
	var of struct{ Default map[string]json.RawMessage }
	if raw, there := file.Values[clientcfg.PolicyTarget(client)]; client != "" && there {
		err = json.Unmarshal(raw, &of.Default)
	} else if raw, there := file.Values[clientcfg.SettingsTarget]; there {
		err = json.Unmarshal(raw, &of)
	}
	for _, list := range []string{"user", "client", "total", "source"} {
		if raw := of.Default[list]; !syntax.IsNull(raw) {
			doc[list] = raw
		}
	}
	if len(doc) == 0 && err == nil {
		err = command.Usagef("%s has no limits for this client or for all clients", name)
	}
	return err
}

func (l *limits) newCandidatePromote() *cobra.Command {
	return l.changes(&cobra.Command{
		Use: "promote [CLIENT]", Short: "Make a candidate live", Args: command.Takes("[CLIENT]"),
		Long: `Make a candidate live: its limits replace the limits of the client, or the default limits. A
trusted client is no longer trusted.`,
		Example: "  oauth-server limits candidate promote shop --check\n  oauth-server limits candidate promote",
		RunE: func(cmd *cobra.Command, args []string) error {
			of := candidate(only(args))
			return l.perform(cmd.Context(), of, http.MethodPost, nil, strings.Replace(of.unset, "no longer tried", "now live", 1))
		},
	})
}
