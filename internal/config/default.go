package config

import (
	"time"

	"oauth-server/internal/keys"
)

// DefaultStorePath is the embedded store when none is configured.
const DefaultStorePath = "oauth-server.db"

// DefaultDatabase is the MongoDB database when none is configured.
const DefaultDatabase = "oauth"

// Default is the configuration of a server that is given none: it listens on
// loopback only and keeps everything in [DefaultStorePath].
func Default() *Config {
	return &Config{
		Listen:          "127.0.0.1:9096",
		ShutdownTimeout: Duration(10 * time.Second),
		Log:             Log{Format: "text", Level: "info"},
		Metrics:         Metrics{MaxClients: 200},
		Store:           Store{Embedded: &Embedded{Path: DefaultStorePath}},
		Tokens: Tokens{
			Algorithm:   keys.ES256,
			AccessTTL:   Duration(time.Hour),
			RefreshTTL:  Duration(30 * 24 * time.Hour),
			CodeTTL:     Duration(time.Minute),
			KeyRotation: Duration(90 * 24 * time.Hour),
		},
		Sessions:  Sessions{TTL: Duration(12 * time.Hour)},
		RateLimit: defaultRateLimit(),
	}
}

func defaultRateLimit() RateLimit {
	return RateLimit{
		Mode:          "enforce",
		CanaryPercent: 100,
		Default:       Limits{User: []Limit{defaultLimit()}, Client: []Limit{defaultLimit()}},
	}
}

func defaultLimit() Limit {
	return Limit{
		Name:      "per-minute",
		Requests:  100,
		Window:    Duration(time.Minute),
		Frames:    1,
		Algorithm: "sliding",
		SoftRatio: 0.8,
	}
}

// preset gives the absent fields of a limit their defaults. The name has none:
// it tells limits apart.
func (l *Limit) preset() {
	*l = defaultLimit()
	l.Name = ""
}

func (m *MongoDB) preset() { m.Database = DefaultDatabase }
