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
// MongoDB URI is replaced by [Redacted], with a comment on where to give it instead.
func (c *Config) WriteYAML(w io.Writer) error {
	shown, redacted := c.redacted()
	var text bytes.Buffer
	if redacted {
		text.WriteString("# The password of store.mongodb.uri is not shown: set OAUTH_MONGODB_URI to override it.\n")
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
	shown, _ := c.redacted()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(shown)
}

// redacted returns a copy without the password, and whether there was one.
func (c *Config) redacted() (shown Config, hidden bool) {
	shown = *c
	m := c.Store.MongoDB
	switch {
	case m == nil || RedactURI(m.URI) == m.URI && m.URIFile == "":
		return shown, false
	case m.URIFile != "": // where the URI is read again
		shown.Store.MongoDB = &MongoDB{URIFile: m.URIFile, Database: m.Database}
		return shown, false
	}
	shown.Store.MongoDB = &MongoDB{URI: RedactURI(m.URI), Database: m.Database}
	return shown, true
}
