package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/strict"
)

// applied returns the limits that the simulation applies: as part of a sentence, and as files.
// Built-in limits count as one of the files if they apply.
func (f *policyFiles) applied() (under string, files []simulate.PolicyFile, err error) {
	var names []string
	add := func(name, text string) {
		names = append(names, command.Printable(name))
		files = append(files, simulate.PolicyFile{Name: name, Text: text})
	}
	if f.limits != "" {
		add(f.limits, f.text)
	}
	if f.config != "" {
		text, err := yamlOf(map[string]any{"rate_limit": f.rateLimit})
		if err != nil {
			return "", nil, err
		}
		add(f.config, text)
	}
	lists, of := f.builtIn()
	given := strings.Join(names, " and ")
	if len(of) > 0 {
		text, err := yamlOf(map[string]any{"settings": map[string]any{"default": lists}})
		if err != nil {
			return "", nil, err
		}
		add("built in", text)
	}
	limit := syntax.ShowLimit(ratelimit.DefaultLimit())
	switch {
	case given == "":
		under = "the built-in limits, " + limit
	case len(of) > 0:
		under = fmt.Sprintf("the limits of %s and, for other %s, the built-in limits, %s", given, strings.Join(of, " and "), limit)
	default:
		under = "the limits of " + given
	}
	return under, files, nil
}

// builtIn returns the lists for all clients that no file sets, and their names.
func (f *policyFiles) builtIn() (lists map[string]any, of []string) {
	given := map[string]bool{}
	settings := map[string]any{}
	_ = json.Unmarshal(f.settings, &settings) // already validated, or empty
	for _, from := range []map[string]any{settings, f.rateLimit} {
		inGeneral, _ := from["default"].(map[string]any)
		for name, list := range inGeneral {
			given[name] = given[name] || list != nil
		}
	}
	lists = map[string]any{}
	all := ratelimit.DefaultSettings().Default
	for _, list := range []struct {
		name   string
		limits []ratelimit.Limit
	}{{"user", all.User}, {"client", all.Client}} {
		if !given[list.name] {
			lists[list.name] = list.limits
			of = append(of, list.name+"s")
		}
	}
	return lists, of
}

// absent returns notes about clients that have limits but no request in the log: their names may be
// misspelt. It returns nothing if the result omits clients, because then this is unknown.
func (f *policyFiles) absent(r *simulate.Result) []string {
	if r.MoreClients > 0 || r.ClientCount == 0 {
		return nil
	}
	var there []string
	for i := range r.Clients {
		there = append(there, r.Clients[i].ClientID)
	}
	missing := maps.Clone(f.all.Settings.Clients)
	for i := range f.all.Overrides {
		missing[f.all.Overrides[i].ClientID] = ratelimit.Policy{}
	}
	for _, id := range there {
		delete(missing, id)
	}
	if len(missing) == 0 {
		return nil
	}
	const most = 5
	var named []string
	for _, id := range slices.Sorted(maps.Keys(missing)) {
		if len(named) == most {
			named = append(named, fmt.Sprintf("… and %d more", len(missing)-most))
			break
		}
		name := command.Printable(id)
		if near := strict.Suggest(id, there); near != "" {
			name += " (" + command.Printable(strings.TrimPrefix(near, "; ")) + ")"
		}
		named = append(named, name)
	}
	what := "a client with its own limits"
	if len(missing) > 1 {
		what = fmt.Sprintf("%d clients with their own limits", len(missing))
	}
	return []string{fmt.Sprintf("The log has no requests of %s: %s", what, strings.Join(named, ", "))}
}

func yamlOf(v any) (string, error) {
	var out bytes.Buffer
	err := strict.WriteYAML(&out, v)
	return out.String(), err
}
