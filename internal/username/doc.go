// Package username brings usernames into one form, so that one person has one name however it is typed:
// PRECIS UsernameCaseMapped (RFC 8265 section 3.3). It maps the case and the width of characters and
// composes them (NFC), and refuses what a name cannot hold: white space, symbols, invisible and
// unassigned characters, a mixture of directions. For a new name [Unmixed] adds that its letters are of
// one script (UTS 39).
//
// The package compares nothing that merely looks alike: names wholly of one script that resemble each
// other, such as Latin "ace" and Cyrillic "асе", are different and both admitted.
//
//	username.Canonical("Ａlice") // "alice": the first letter was full-width
//	username.Canonical("ali ce") // an error
package username
