// Package keys makes, rotates and publishes the keys that access tokens are signed with, and signs
// and verifies access tokens.
//
// A [Ring] holds an immutable snapshot of all published keys behind one atomic pointer, so that
// signing and verifying never wait. [Ring.Maintain] compares it with the store and takes the steps
// that are due; the caller repeats it, at least once in [Ring.CheckEvery].
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
// Any number of instances may share a store. They reach the same decisions from the same records and
// their clocks. Where two make the same generation at once, [Store.AddKey] lets one win, and the
// other uses the winner's key.
//
// With [Secrets] the private keys are encrypted in the store, with the ID of the key as associated
// data. Keys that are stored in clear, or encrypted with the second secret, are encrypted with the
// current one by the next [Ring.Maintain]. A key that cannot be decrypted stops a start; none is made
// in its place.
//
// [Replacement] replaces keys by order of an operator. [Ring.Refresh] is how running instances notice
// it, and is to be repeated every second or two.
//
// The package does not decide what a token contains; its caller does. It never logs a key or a token.
package keys
