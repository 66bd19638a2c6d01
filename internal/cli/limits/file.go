package limits

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

func (l *limits) newExport() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "export", Short: "Write everything that operators have set to a file of limits", Args: command.Takes(),
		Long: `Write everything that operators have set to a YAML file of limits: settings, tiers, policies,
overrides and candidates. Values from the configuration file are left out. In place of a
temporary value, the file has the value that it returns to.

The file is sorted, so you can compare two of them. Applying it right away changes nothing.`,
		Example: `  oauth-server limits export > limits.yaml
  oauth-server limits export | diff limits.yaml -`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, _, err := l.set(cmd.Context())
			if err != nil {
				return err
			}
			text, err := l.export(set)
			if l.Output == command.OutputJSON {
				text, err = json.MarshalIndent(set, "", "  ")
				text = append(text, '\n')
			}
			if err != nil {
				return err
			}
			if file != "" {
				return os.WriteFile(file, text, 0o644) //nolint:gosec // contains no secrets
			}
			_, err = l.Out.Write(text)
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "file to write (default standard output)")
	return cmd
}

// set reads everything that operators have set, and its ETag. All pages are from the same version.
func (l *limits) set(ctx context.Context) (set *adminapi.Set, etag string, err error) {
	api, err := l.Connect()
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	set = &adminapi.Set{}
	for query := (url.Values{"limit": {setPage}}); ; query.Set("after", set.Next) {
		var page adminapi.Set
		of, err := api.Get(ctx, "/changes", query, &page)
		if err != nil {
			return nil, "", err
		}
		if etag != "" && of != etag { // changed between two pages: start over
			set, etag = &adminapi.Set{}, ""
			continue
		}
		etag, page.Targets = of, append(set.Targets, page.Targets...)
		if set = &page; set.Next == "" {
			return set, etag, nil
		}
	}
}

const setPage = "5000"

// export writes a file of limits. Its sections are in target order.
func (l *limits) export(set *adminapi.Set) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Limits set by operators on %s, as of change %d.\n", l.Server, set.Version)
	sections, order := map[string]map[string]json.RawMessage{}, []string{}
	for i := range set.Targets {
		t := &set.Targets[i]
		if !t.Until.IsZero() {
			fmt.Fprintf(&out, "# %s is temporary until %s; below is the value it returns to.\n", t.Target, command.DateTime(t.Until))
		}
		section, name, _ := strings.Cut(t.Target, "/")
		value := lasting(t)
		if syntax.IsNull(value) {
			continue
		}
		if sections[section] == nil {
			sections[section] = map[string]json.RawMessage{}
			order = append(order, section)
		}
		sections[section][name] = syntax.Short(section, value)
	}
	if len(order) == 0 {
		out.WriteString("{}\n")
	}
	for _, section := range order {
		var v any = map[string]any{section: sections[section]}
		if section == "settings" {
			v = map[string]any{section: sections[section][""]}
		}
		if err := strict.WriteYAML(&out, v); err != nil {
			return nil, fmt.Errorf("write %s: %w", section, err)
		}
	}
	return out.Bytes(), nil
}

const fileHelp = `FILE has the format of "limits export"; - reads standard input. Its sections are settings,
tiers, policies, overrides (named "CLIENT USERNAME") and candidates. Each entry replaces the
whole entry on the server. Fields left out of settings come from the configuration file,
fields left out of a policy from its tier or the settings, and options left out of a limit
have their defaults.

Entries that are not in FILE stay, unless you give --prune. A temporary value counts as the
value that it returns to, so it stays unless FILE has a different one.`

// fileFlags are the flags of commands that read a file of limits.
type fileFlags struct {
	file  string
	prune bool
}

func (f *fileFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "file of limits; - for standard input")
	cmd.Flags().BoolVar(&f.prune, "prune", false, "also remove entries that are not in FILE")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml") // fails only for a missing flag
}

func (l *limits) newDiff() *cobra.Command {
	var f fileFlags
	cmd := &cobra.Command{
		Use: "diff -f FILE", Short: "Show how a file of limits differs from the server", Args: command.Takes(),
		Long: `Show how a file of limits differs from the server, and change nothing.

The exit status is 0 without differences, 1 with differences, and 2 after an error.

` + fileHelp,
		Example: "  oauth-server limits diff -f limits.yaml\n  oauth-server limits diff -f limits.yaml --prune",
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		plan, err := l.plan(cmd.Context(), &f)
		if err != nil {
			return command.Usage(err)
		}
		planned := document[adminapi.Changed]{RawMessage: json.RawMessage(`{"changes":[]}`)}
		if len(plan.changes) > 0 {
			if planned, err = rehearse[adminapi.Changed](cmd.Context(), l, plan.request("")); err != nil {
				return command.Usage(plan.inFile(err))
			}
		}
		differs := len(planned.Value.Changes) > 0
		if l.Output == command.OutputJSON {
			err = l.JSON(planned)
		} else if differs {
			err = l.showPlan(&planned.Value)
		}
		if err == nil && differs {
			err = command.ErrReported
		}
		return err
	}
	return cmd
}

func (l *limits) newApply() *cobra.Command {
	var f fileFlags
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Set all limits of a file in one change", Args: command.Takes(),
		Long: `Set all limits of a file in one change: everything or nothing.

The command first shows the differences. If they can deny more requests, it also shows the
clients that would have been denied in the last ten minutes, and asks for confirmation. If
another change comes in between, it changes nothing and fails.

` + fileHelp,
		Example: `  oauth-server limits apply -f limits.yaml
  oauth-server limits apply -f limits.yaml --prune --yes --reason "$CI_COMMIT"`,
	}
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		plan, err := l.plan(cmd.Context(), &f)
		if err != nil {
			return err
		}
		if len(plan.changes) == 0 {
			return l.Answer(map[string]any{"version": plan.version, "changes": []any{}}, nothingToChange)
		}
		return plan.inFile(l.performMany(cmd.Context(), plan.request(l.lasts), "The limits in "+plan.name+" are now applied"))
	}
	return l.changes(cmd)
}

// plan is the difference between a file of limits and the current settings.
type plan struct {
	name    string // of the file
	etag    string // of the current settings
	version int64
	changes []adminapi.SetTarget
	file    *syntax.File
}

func (l *limits) plan(ctx context.Context, f *fileFlags) (*plan, error) {
	name, text, err := syntax.ReadFile(l.In, f.file)
	if err != nil {
		return nil, err
	}
	p := &plan{name: name}
	if p.file, err = syntax.ParseFile(name, text); err != nil {
		return nil, err
	}
	set, etag, err := l.set(ctx)
	if err != nil {
		return nil, err
	}
	p.etag, p.version = etag, set.Version
	known := map[string]json.RawMessage{}
	for i := range set.Targets {
		t := &set.Targets[i]
		if value := lasting(t); !syntax.IsNull(value) {
			known[t.Target] = value
		}
		if _, stays := p.file.Values[t.Target]; !stays && f.prune && !syntax.IsNull(lasting(t)) {
			p.changes = append(p.changes, adminapi.SetTarget{Target: t.Target, Value: json.RawMessage("null")})
		}
	}
	for _, target := range p.file.Targets() {
		section, _, _ := strings.Cut(target, "/")
		value := p.file.Values[target]
		if was, is := known[target]; !is || !slices.Equal(syntax.Short(section, was), syntax.Short(section, value)) {
			p.changes = append(p.changes, adminapi.SetTarget{Target: target, Value: value})
		}
	}
	return p, nil
}

// request returns the change that makes the settings equal to the file, based on the settings at
// the time of the plan.
func (p *plan) request(lasts string) adminclient.Change {
	return adminclient.Change{Method: http.MethodPost, Path: "/changes", ETag: p.etag, Body: adminapi.Changes{Changes: p.changes, For: lasts}}
}

// inFile adds file lines to an error of the server.
func (p *plan) inFile(err error) error {
	var refused *adminclient.ProblemError
	if errors.As(err, &refused) && refused.Status == http.StatusRequestEntityTooLarge {
		return fmt.Errorf("%s changes %d targets, but one change can have about a thousand: split the file, and apply the parts without --prune",
			p.name, len(p.changes))
	}
	if !errors.As(err, &refused) || len(refused.Errors) == 0 {
		return err
	}
	var errs fielderr.Errors
	for _, e := range refused.Errors {
		if target, field, found := p.find(e.Field); found {
			errs = append(errs, p.file.Inside(target, field, e.Detail))
		} else {
			errs = append(errs, fielderr.Error{Path: e.Field, Message: e.Detail, Origin: p.name})
		}
	}
	return errs
}

// find maps a field path of a server error to the target in the plan and the field within it.
// Errors about one change use its index; errors about the combined result use the target's name.
func (p *plan) find(path string) (target, field string, found bool) {
	if index, is := strings.CutPrefix(path, "changes["); is {
		index, field, _ = strings.Cut(index, "]")
		if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(p.changes) {
			field = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(field, ".value"), ".target"), ".")
			return p.changes[i].Target, field, true
		}
	}
	for i := range p.changes {
		kind, name, _ := strings.Cut(p.changes[i].Target, "/")
		if kind == "policies" {
			kind = "clients"
		}
		if rest, is := strings.CutPrefix(path+".", fielderr.Join(kind, name)+"."); is {
			return p.changes[i].Target, strings.TrimSuffix(rest, "."), true
		}
	}
	return "", "", false
}

// lasting returns the permanent value of a target, without temporary changes.
func lasting(t *adminapi.SetTarget) json.RawMessage {
	if !t.Until.IsZero() {
		return t.ReturnsTo
	}
	return t.Value
}
