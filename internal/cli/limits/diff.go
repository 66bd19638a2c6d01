package limits

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/ratelimit"
)

// noDifference is the result of differences for equal documents.
const noDifference = "-"

// differences lists the fields that differ between two documents, for a table cell.
func differences(before, after json.RawMessage) string {
	was, is := flatten(before), flatten(after)
	names := slices.Sorted(maps.Keys(was))
	for name := range is {
		if _, both := was[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []string
	for _, name := range names {
		a, hadIt := was[name]
		b, hasIt := is[name]
		switch {
		case a == b || name == "client_id" || name == "name" || !hadIt && b == yesNo(false) || !hasIt && a == yesNo(false):
		case !hadIt && name == "username" && sharedKey(b) != "":
			out = append(out, sharedKey(b))
		case !hadIt:
			out = append(out, name+" "+b)
		case !hasIt:
			out = append(out, "no "+name+" (was "+a+")")
		default:
			out = append(out, name+" "+a+" -> "+b)
		}
	}
	if len(out) == 0 {
		return noDifference
	}
	return command.Printable(strings.Join(out, "; "))
}

// flatten returns the values of a document by dotted path. A list is one value.
func flatten(raw json.RawMessage) map[string]string {
	var doc map[string]any
	out := map[string]string{}
	if json.Unmarshal(raw, &doc) != nil {
		return out
	}
	var walk func(prefix string, m map[string]any)
	walk = func(prefix string, m map[string]any) {
		for name, v := range m {
			switch v := v.(type) {
			case map[string]any:
				walk(prefix+name+".", v)
			case []any:
				out[prefix+name] = shortList(v)
			case bool:
				out[prefix+name] = yesNo(v)
			case nil:
			default:
				out[prefix+name] = fmt.Sprint(v)
			}
		}
	}
	walk("", doc)
	return out
}

func shortList(list []any) string {
	items := make([]string, len(list))
	for i, item := range list {
		items[i] = shortItem(item)
	}
	return strings.Join(items, " ")
}

// shortItem writes a limit in the syntax of the flags, and any other value unchanged.
func shortItem(item any) string {
	raw, err := json.Marshal(item)
	var l ratelimit.Limit
	if err != nil || json.Unmarshal(raw, &l) != nil {
		return fmt.Sprint(item)
	}
	return syntax.ShowLimit(l)
}
