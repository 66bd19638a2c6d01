// Package secret makes and checks everything that must not leak: random tokens, their stored
// digests, and people's passwords.
//
// There are two kinds of secret, with two kinds of hash:
//
//   - Secrets that the server generates (client secrets, codes, refresh tokens, session
//     identifiers)
//     carry 256 random bits. They cannot be guessed, so a single SHA-256 is safe and fast.
//     See [New] and [Digest].
//   - Passwords that people choose are guessable, so they are stored as argon2id, which is slow and
//     memory-hard on purpose. See [Passwords].
//
// The package never logs or stores a secret, and compares secrets only in constant time.
//
//	token := secret.New()              // "3q2-7w…", shown to its owner once
//	stored := secret.DigestOf(token)   // what the store keeps
//	stored.Matches(token)              // true, in constant time
package secret
