// Package secret makes and checks everything that must not leak: random tokens, their stored
// digests, and people's passwords.
//
// Two kinds of secret, two kinds of hash:
//
//   - What the server generates itself (client secrets, codes, refresh tokens,
//     session identifiers) carries 256 random bits. It cannot be guessed, so a
//     single SHA-256 is safe and fast to store. See [New] and [Digest].
//   - What people choose (passwords) is guessable, so it is stored as argon2id,
//     slow and memory-hard on purpose. See [Passwords].
//
// The package never logs, never stores and never compares in variable time.
//
//	token := secret.New()              // "3q2-7w…", shown to its owner once
//	stored := secret.DigestOf(token)   // what the store keeps
//	stored.Matches(token)              // true, in constant time
package secret
