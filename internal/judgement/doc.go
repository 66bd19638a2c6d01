// Package judgement decides whether a token request may pass. It applies everything that operators
// can configure: the limits of the client and user, candidate limits, bans, and queues. It combines
// oauth-server/internal/ratelimit, oauth-server/internal/turns and oauth-server/internal/bans. Two
// packages use it: the token endpoint of this server (oauth-server/internal/grants), and the
// gateway in front of another server (oauth-server/internal/gateway).
//
//	judge := judgement.New(judgement.Options{Counters: counters, Policies: policies, Clock: clock.Now})
//	turn := judge.Admit(ctx, judgement.Request{Key: ratelimit.Key{ClientID: "shop", Username: "ada"}, Grant: "refresh_token"})
//	if turn.Rejected() { … 429 … }
//
// The package does no I/O. It passes every decision to [Options].Observe.
package judgement
