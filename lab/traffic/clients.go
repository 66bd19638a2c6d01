package traffic

import (
	"math"
	"time"

	"oauth-server/internal/clientcfg"
)

// Client is an OAuth client and how it behaves.
type Client struct {
	ID    string
	Grant clientcfg.Grant // client_credentials or refresh_token
	// Users sign in once with their password, then refresh. Only for the grant refresh_token.
	Users []string
	// Rate returns the requests per second that it sends, by the time since the start.
	Rate func(since time.Duration) float64
	// Wrong is the share of requests with a wrong secret, from 0 to 1.
	Wrong float64
}

// Registration returns the client as it is registered, without a secret.
func (c *Client) Registration() clientcfg.Client {
	r := clientcfg.Client{ID: c.ID, Scopes: []string{"read"}, Grants: []clientcfg.Grant{c.Grant}}
	if c.Grant == clientcfg.RefreshToken {
		r.Grants = append(r.Grants, clientcfg.Password)
	}
	return r
}

// DemoClients returns the clients of the demonstration. Their limits are in
// deploy/demo/oauth-server.yaml: 10 requests per second by default.
func DemoClients() []Client {
	return []Client{
		// The operator's own app: trusted, far above the default limit.
		{ID: "mobile-app", Grant: clientcfg.RefreshToken, Users: []string{"ada", "grace", "edsger"}, Rate: wave(14, 3, 30*time.Second)},
		// Well below the limit.
		{ID: "shop", Grant: clientcfg.ClientCredentials, Rate: wave(4, 1.5, 20*time.Second)},
		// A limit of its own, 30 per second, which it exceeds at times.
		{ID: "partner", Grant: clientcfg.ClientCredentials, Rate: wave(25, 12, 40*time.Second)},
		// Requests a token for every call it makes.
		{ID: "integrator", Grant: clientcfg.ClientCredentials, Rate: wave(30, 10, 25*time.Second)},
		// A batch job: hardly a request, then many at once, so that it is banned.
		{ID: "batch-job", Grant: clientcfg.ClientCredentials, Rate: bursts(1, 50, 25*time.Second, 6*time.Second)},
		// In dry-run, and above the limit.
		{ID: "newcomer", Grant: clientcfg.ClientCredentials, Rate: wave(17, 4, 35*time.Second)},
		// Gets its last token again where it exceeds the limit; the other would, and is in dry-run.
		{ID: "reporter", Grant: clientcfg.ClientCredentials, Rate: wave(20, 5, 30*time.Second)},
		{ID: "pilot", Grant: clientcfg.ClientCredentials, Rate: wave(20, 5, 45*time.Second)},
		// Waits for its turn where it exceeds its limit, 2 per second; the other would, and is in dry-run.
		{ID: "patient", Grant: clientcfg.ClientCredentials, Rate: wave(4, 1, 30*time.Second)},
		{ID: "rehearsal", Grant: clientcfg.ClientCredentials, Rate: wave(4, 1, 45*time.Second)},
		// Often sends half of its secret only.
		{ID: "confused", Grant: clientcfg.ClientCredentials, Rate: wave(0.8, 0, time.Minute), Wrong: 0.7},
		// Refreshes more often than each user may, and less than its address may.
		{ID: "notes-app", Grant: clientcfg.RefreshToken, Users: []string{"ada", "grace"}, Rate: wave(2.6, 0.6, 35*time.Second)},
		// A contract that must hold exactly: a strict limit, which it uses up at times.
		{ID: "payments", Grant: clientcfg.ClientCredentials, Rate: wave(0.9, 0.5, 30*time.Second)},
	}
}

// wave is a sine around a mean.
func wave(mean, swing float64, period time.Duration) func(time.Duration) float64 {
	return func(since time.Duration) float64 {
		return mean + swing*math.Sin(2*math.Pi*since.Seconds()/period.Seconds())
	}
}

// bursts is the rate loud for the given length at the end of each period, and quiet otherwise.
func bursts(quiet, loud float64, period, length time.Duration) func(time.Duration) float64 {
	return func(since time.Duration) float64 {
		if since%period >= period-length {
			return loud
		}
		return quiet
	}
}
