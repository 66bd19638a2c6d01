// Package accounts has the people who can sign in: their records, the check of a password with its
// limits, and browser sessions. It stores neither passwords nor addresses nor cookies in clear, and
// makes no OAuth errors: package grants does.
//
// A user's Stamp is in everything that is issued after a sign-in. A revocation changes the stamp, so
// all of it ends at once on every instance.
//
//	service, err := accounts.New(accounts.Options{Users: users, Records: records, Deriver: mac})
//	cookie, session, err := service.SignIn(ctx, accounts.SignIn{Username: "alice", Password: password})
package accounts
