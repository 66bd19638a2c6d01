package traffic

import (
	"math"
	"time"

	"oauth-server/internal/clientcfg"
)

// Member is one client of the cast.
type Member struct {
	ID    string
	Grant clientcfg.Grant // client_credentials or refresh_token
	// Users sign in once with their password, then refresh: of the grant
	// refresh_token.
	Users []string
	// Rate is how many requests a second it sends, at a time since the start.
	Rate func(since time.Duration) float64
	// Wrong is the share of requests with a wrong secret, from 0 to 1.
	Wrong float64
}

// Registration is the client as it is registered, without a secret.
func (m *Member) Registration() clientcfg.Client {
	c := clientcfg.Client{ID: m.ID, Scopes: []string{"read"}, Grants: []clientcfg.Grant{m.Grant}}
	if m.Grant == clientcfg.RefreshToken {
		c.Grants = append(c.Grants, clientcfg.Password)
	}
	return c
}

// Cast is who plays. The default limit of the demonstration is 2 a second.
func Cast() []Member {
	return []Member{
		// The house's own app: trusted, far above the default limit.
		{ID: "mobile-app", Grant: clientcfg.RefreshToken, Users: []string{"ada", "grace", "edsger"}, Rate: wave(5, 1, 30*time.Second)},
		// A shop that behaves: well below the limit.
		{ID: "shop", Grant: clientcfg.ClientCredentials, Rate: wave(0.8, 0.3, 20*time.Second)},
		// A partner with a limit of its own, 6 a second, that it touches at times.
		{ID: "partner", Grant: clientcfg.ClientCredentials, Rate: wave(5, 2.5, 40*time.Second)},
		// An integrator that asks for a token for every call it makes.
		{ID: "integrator", Grant: clientcfg.ClientCredentials, Rate: wave(6, 2, 25*time.Second)},
		// A nightly job, again and again: nothing, then all at once.
		{ID: "batch-job", Grant: clientcfg.ClientCredentials, Rate: bursts(0.2, 10, 25*time.Second, 6*time.Second)},
		// A newcomer in dry-run, who would be limited.
		{ID: "newcomer", Grant: clientcfg.ClientCredentials, Rate: wave(3.5, 1, 35*time.Second)},
		// Somebody who copied half of a secret.
		{ID: "confused", Grant: clientcfg.ClientCredentials, Rate: wave(0.8, 0, time.Minute), Wrong: 0.7},
	}
}

// wave swings around a mean.
func wave(mean, swing float64, period time.Duration) func(time.Duration) float64 {
	return func(since time.Duration) float64 {
		return mean + swing*math.Sin(2*math.Pi*since.Seconds()/period.Seconds())
	}
}

// bursts is quiet, and loud for a while at the end of each period.
func bursts(quiet, loud float64, period, length time.Duration) func(time.Duration) float64 {
	return func(since time.Duration) float64 {
		if since%period >= period-length {
			return loud
		}
		return quiet
	}
}
