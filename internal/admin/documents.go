package admin

import (
	"cmp"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// Conversions from stored values to the documents for operators.

func showSettings(p *clientcfg.PolicySnapshot) adminapi.Settings {
	s := p.Settings()
	mode := s.Mode
	if mode == ratelimit.Unset {
		mode = ratelimit.Enforce
	}
	return adminapi.Settings{
		Mode: string(mode), CanaryPercent: s.CanaryPercent, Note: p.Set().Settings.Note,
		Default: adminapi.Default{
			User: adminapi.ShowLimits(s.Default.User), Client: adminapi.ShowLimits(s.Default.Client), Total: adminapi.ShowLimits(s.Default.Total), Source: adminapi.ShowLimits(s.Default.Source),
			OverLimit: string(cmp.Or(s.Default.OverLimit, ratelimit.OverLimitDeny)), Ban: s.Default.Ban, HideHeaders: s.Default.HideHeaders,
			Criticality: s.Default.Criticality.String(),
			Waits:       adminapi.ShowWaits(s.Default.MaxWait, s.Default.MaxWaiting),
		},
	}
}

func showPolicy(clientID string, p clientcfg.ClientPolicy) adminapi.Policy {
	return adminapi.Policy{
		ClientID: clientID, Trusted: p.Trusted, Tier: p.Tier, Mode: string(p.Mode),
		User: adminapi.ShowLimits(p.User), Client: adminapi.ShowLimits(p.Client), Total: adminapi.ShowLimits(p.Total), Source: adminapi.ShowLimits(p.Source),
		OverLimit: string(p.OverLimit), Ban: p.Ban, Criticality: p.Criticality.String(), HideHeaders: p.HideHeaders, Note: p.Note,
		Waits: adminapi.ShowWaits(p.MaxWait, p.MaxWaiting),
	}
}

func showCandidate(name string, c clientcfg.Candidate) adminapi.Candidate {
	return adminapi.Candidate{
		ClientID: name, User: adminapi.ShowLimits(c.User), Client: adminapi.ShowLimits(c.Client),
		Total: adminapi.ShowLimits(c.Total), Source: adminapi.ShowLimits(c.Source),
		OverLimit: string(c.OverLimit), Waits: adminapi.ShowWaits(c.MaxWait, c.MaxWaiting), Ban: c.Ban,
		Criticality: c.Criticality.String(), Note: c.Note,
	}
}
