package events

import (
	"fmt"
	"io"
	"slices"
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
	Format  Format // one of [Formats]; empty: [Auto]
	Mapping Mapping
	// Zone is the zone of times without one; nil: UTC.
	Zone *time.Location
	// Strict ends reading at the first unreadable line; see [Reader.Err].
	Strict bool
	// Stdin is read for the name "-".
	Stdin io.Reader
}

func (o *Options) validate(names []string) error {
	if stdin := slices.Index(names, "-"); stdin >= 0 && slices.Contains(names[stdin+1:], "-") {
		return fmt.Errorf("standard input can be given only once")
	}
	if o.Format == "" {
		o.Format = Auto
	}
	if !o.Mapping.empty() && o.Format != JSON && presets[o.Format] != nil {
		return &MappingError{fmt.Errorf("the format %s takes no mapping", o.Format)}
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return nil
}
