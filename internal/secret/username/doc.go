// Package username converts usernames to one canonical form, so one person has one name however it
// is typed: PRECIS UsernameCaseMapped (RFC 8265 section 3.3). It maps the case and width of
// characters, composes them (NFC), and refuses white space, symbols, invisible and unassigned
// characters, and mixed directions of writing. For a new name, [Unmixed] also requires the letters
// to be of one script (UTS 39).
//
// The package does not compare lookalikes. Names in a single script that resemble each other, such
// as Latin "ace" and Cyrillic "асе", are different names, and both are allowed.
//
//	username.Canonical("Ａlice") // "alice": the first letter was full-width
//	username.Canonical("ali ce") // an error
package username
