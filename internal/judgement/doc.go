// Package judgement decides whether a token request may pass, by everything that operators can set: the limits of its
// client and user, those that are tried out beside them, bans, and waiting for a turn. It brings together
// oauth-server/internal/ratelimit, oauth-server/internal/turns and oauth-server/internal/bans for the doors at which
// tokens are asked for: the token endpoint of this server (oauth-server/internal/grants) and the gateway before another
// one (oauth-server/internal/gateway).
//
//	judge := judgement.New(judgement.Options{Counters: counters, Policies: policies, Clock: clock.Now})
//	turn := judge.Admit(ctx, judgement.Request{Key: ratelimit.Key{ClientID: "shop", Username: "ada"}, Grant: clientcfg.RefreshToken})
//	if turn.Rejected() { … 429 … }
//
// It does no I/O. Every decision is passed to [Options].Observe.
package judgement
