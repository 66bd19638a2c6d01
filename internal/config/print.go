package config

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"

	"oauth-server/internal/strict"
)

// Redacted replaces a password.
const Redacted = "REDACTED"

// secretOptions are the options of a connection string that hold a secret.
var secretOptions = regexp.MustCompile(`(?i)(tlsCertificateKeyFilePassword=|AWS_SESSION_TOKEN:)[^&,]*`)

// RedactURI replaces the secrets in a connection string. The string need not be well
// formed: one whose password contains @ or / is what ends up in an error message.
func RedactURI(uri string) string {
	uri = secretOptions.ReplaceAllString(uri, "${1}"+Redacted)
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return uri
	}
	end := strings.LastIndex(rest, "@")
	user, _, hasPassword := strings.Cut(rest[:max(0, end)], ":")
	if !hasPassword {
		return uri
	}
	return scheme + "://" + user + ":" + Redacted + rest[end:]
}

// WriteYAML writes the configuration in a form that can be read again. A password in the
// MongoDB URI, the secrets of the signing keys and that of the introspection are replaced by
// [Redacted], with a comment on where to give them instead.
func (c *Config) WriteYAML(w io.Writer) error {
	shown := c.redacted()
	var text bytes.Buffer
	if m := shown.Store.MongoDB; m != nil && m.URI != c.Store.MongoDB.URI && m.URIFile == "" {
		text.WriteString("# The password of store.mongodb.uri is not shown: set OAUTH_MONGODB_URI to override it.\n")
	}
	if shown.Keys != c.Keys {
		text.WriteString("# The secrets of keys are not shown: set OAUTH_KEYS_SECRET and OAUTH_KEYS_SECOND_SECRET to override them.\n")
	}
	if shown.Gateway.Introspection != c.Gateway.Introspection {
		text.WriteString("# The secret of gateway.introspection is not shown: set OAUTH_INTROSPECTION_CLIENT_SECRET to override it.\n")
	}
	if err := strict.WriteYAML(&text, shown); err != nil {
		return err
	}
	_, err := w.Write(text.Bytes())
	return err
}

// WriteJSON writes the same as [Config.WriteYAML], as JSON. It can be read again too,
// because JSON is YAML.
func (c *Config) WriteJSON(w io.Writer) error {
	shown := c.redacted()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(shown)
}

// redacted returns a copy without the password and the secrets. A URI that was read from a file is
// left out: it is read there again.
func (c *Config) redacted() Config {
	shown := *c
	shown.Keys = c.Keys.redacted()
	shown.Gateway.Introspection = c.Gateway.Introspection.redacted()
	switch m := c.Store.MongoDB; {
	case m == nil:
	case m.URIFile != "":
		shown.Store.MongoDB = &MongoDB{URIFile: m.URIFile, Database: m.Database}
	case RedactURI(m.URI) != m.URI:
		shown.Store.MongoDB = &MongoDB{URI: RedactURI(m.URI), Database: m.Database}
	}
	return shown
}
