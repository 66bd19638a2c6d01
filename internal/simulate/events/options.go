package events

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Format is the name of the format of a log.
type Format = string

// The formats.
const (
	Auto        Format = "auto" // detected from the first lines of each file
	OAuthServer Format = "oauth-server"
	Keycloak    Format = "keycloak"
	Auth0       Format = "auth0"
	Okta        Format = "okta"
	Entra       Format = "entra"
	JSON        Format = "json" // with a [Mapping], like the three below
	CSV         Format = "csv"
	Common      Format = "common" // the Common Log Format of web servers
	Combined    Format = "combined"
)

// Formats returns all formats, for help texts and completion.
func Formats() []Format {
	return []Format{Auto, OAuthServer, Keycloak, Auth0, Okta, Entra, JSON, CSV, Common, Combined}
}

// Options configure how logs are read. The zero value detects the format and reads times without a
// zone as UTC.
type Options struct {
	Format  Format // empty: [Auto]
	Mapping Mapping
	// Zone is the zone of times without one; nil: UTC.
	Zone *time.Location
	// Strict ends reading at the first unreadable line; see [Reader.Err].
	Strict bool
	// Stdin is read for the name "-".
	Stdin io.Reader
}

func (o *Options) validate(names []string) error {
	stdin := slices.Index(names, "-")
	switch {
	case len(names) == 0:
		return fmt.Errorf("no log to read")
	case stdin >= 0 && slices.Contains(names[stdin+1:], "-"):
		return fmt.Errorf("standard input can be given only once")
	case stdin >= 0 && o.Stdin == nil:
		return fmt.Errorf("there is no standard input")
	}
	if o.Format == "" {
		o.Format = Auto
	}
	if !slices.Contains(Formats(), o.Format) {
		return fmt.Errorf("unknown format %q: use %s", o.Format, strings.Join(Formats(), ", "))
	}
	if !o.Mapping.empty() && o.Format != JSON && presets[o.Format] != nil {
		return &MappingError{fmt.Errorf("the format %s takes no mapping", o.Format)}
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return nil
}
