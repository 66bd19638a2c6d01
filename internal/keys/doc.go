// Package keys makes, rotates and publishes signing keys, and signs and verifies access tokens with
// them.
//
// A [Ring] holds an immutable snapshot of all published keys behind one atomic pointer, so signing
// and verifying never block. [Ring.Maintain] compares the snapshot with the store and takes the
// steps that are due. Call it at least once in [Ring.CheckEvery].
//
// The life of a key, with the defaults and a token lifetime of one hour:
//
//	day 0    generation 1 is made at the first start and signs at once
//	day 89   generation 2 is made and published (PublishAhead, 24 hours), so that
//	         key sets cached without it have expired by the time it signs
//	day 90   generation 2 signs; generation 1 stays published
//	day 90, one hour and two minutes later
//	         the last token of generation 1 has expired: it is deleted
//
// Any number of instances may share a store. They reach the same decisions from the same records
// and their clocks. If two instances make the same generation at once, [Store.AddKey] lets one of
// them succeed, and the other uses that key.
//
// With [Secrets], private keys are encrypted in the store, with the key's ID as associated data.
// The next [Ring.Maintain] encrypts keys that are stored in clear or encrypted with the second
// secret, using the current secret. A key that cannot be decrypted prevents startup, and no key is
// made in its place.
//
// [Replacement] replaces keys on an operator's order. Running instances notice it through
// [Ring.Refresh], which should be called every second or two.
//
// The package does not decide the content of a token. It never logs a key or a token.
package keys
