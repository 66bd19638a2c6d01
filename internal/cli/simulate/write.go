package simulate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/simulate/report"
	"oauth-server/internal/strict"
)

// writePolicies writes the limits found as a file of limits.
func (s *simulation) writePolicies(text string) error {
	if err := os.WriteFile(s.write, []byte(text), fileMode); err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	s.Note("Wrote the limits to %s. Try them with: oauth-server limits candidate set -f %s", s.write, s.write)
	return nil
}

// found returns a file of limits: the settings of the given file with the limits found in their
// lists.
func (s *simulation) found(r *simulate.Result) ([]byte, error) {
	settings := map[string]any{}
	if s.files.settings != nil {
		if err := json.Unmarshal(s.files.settings, &settings); err != nil {
			return nil, fmt.Errorf("read the settings of %s: %w", s.files.limits, err)
		}
	}
	lists, _ := settings["default"].(map[string]any)
	if lists == nil {
		lists = map[string]any{}
	}
	var user, client []ratelimit.Limit
	for i := range r.Targets {
		t := simulate.TrialOf("", r.Targets[i].Found)
		user, client = append(user, t.User...), append(client, t.Client...)
	}
	for name, list := range map[string][]ratelimit.Limit{"user": user, "client": client} {
		if len(list) > 0 {
			lists[name] = list
		}
	}
	settings["default"] = lists
	var out bytes.Buffer
	t := &r.Targets[0]
	fmt.Fprintf(&out, "# The lowest limits that leave %s of the %s untouched, of the requests from %s to %s.\n",
		report.ExactPercent(t.Share), t.Of, command.DateTime(r.From), command.DateTime(r.To))
	if s.files.settings == nil {
		out.WriteString("# All other settings come from the configuration file.\n")
	}
	doc := map[string]any{"settings": settings}
	if s.files.file != nil { // its other sections stay
		for target, value := range s.files.file.Values {
			section, name, _ := strings.Cut(target, "/")
			if section == "settings" {
				continue
			}
			all, _ := doc[section].(map[string]any)
			if all == nil {
				all = map[string]any{}
				doc[section] = all
			}
			all[name] = value
		}
	}
	err := strict.WriteYAML(&out, doc)
	return out.Bytes(), err
}
