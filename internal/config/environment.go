package config

import (
	"regexp"
	"slices"
	"strings"

	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// EnvPrefix is the prefix of all variables that are read.
const EnvPrefix = "OAUTH_"

// configEnv is the variable for --config.
const configEnv = EnvPrefix + "CONFIG"

// foreign are variables that Kubernetes sets in every container of a namespace with a
// service named "oauth" or "oauth-something".
var foreign = regexp.MustCompile(`^OAUTH_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// elsewhere are variables for flags that are not settings, and variables of other commands.
var elsewhere = []string{
	"OAUTH_DEMO", "OAUTH_CHECK_CONFIG", "OAUTH_PRINT_CONFIG",
	"OAUTH_SERVER", "OAUTH_CLIENT_ID", "OAUTH_CLIENT_SECRET", "OAUTH_TOKEN", "OAUTH_USERNAME", "OAUTH_PASSWORD",
	"OAUTH_CA_FILE", "OAUTH_CERT_FILE", "OAUTH_KEY_FILE",
}

// Value returns the value of a variable without trailing line breaks. Secrets made with echo have
// one, and no setting can.
func Value(variable string) string { return strings.TrimRight(variable, "\r\n") }

// environment returns the settings in environ, see [Value]. An empty variable counts as absent,
// because many tools cannot omit one. An unknown variable with [EnvPrefix] is a problem: it is most
// likely misspelt.
func environment(environ []string) (settings []setting, file string, problems fielderr.Errors) {
	known := []string{configEnv}
	for _, o := range options {
		known = append(known, o.Env())
	}
	for _, kv := range environ {
		name, value, _ := strings.Cut(Value(kv), "=")
		if !strings.HasPrefix(name, EnvPrefix) || value == "" {
			continue
		}
		i := slices.Index(known, name)
		switch {
		case name == configEnv:
			file = value
		case i > 0:
			settings = append(settings, setting{option: options[i-1], values: []string{value}, origin: name})
		case !slices.Contains(elsewhere, name) && !foreign.MatchString(name):
			problems.Add(name, "unknown variable%s", suggestUpper(name, known))
		}
	}
	return settings, file, problems
}

func suggestUpper(name string, known []string) string {
	lower := make([]string, len(known))
	for i, k := range known {
		lower[i] = strings.ToLower(k)
	}
	hint := strict.Suggest(name, lower)
	if i := strings.Index(hint, strings.ToLower(EnvPrefix)); i >= 0 {
		return hint[:i] + strings.ToUpper(hint[i:])
	}
	return hint
}
