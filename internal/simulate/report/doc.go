// Package report makes a page and charts of the result of a replay.
//
// The page is one HTML file that needs nothing else: no host, no script and no font from outside, which its content
// security policy forbids. Its charts are drawn when it is written, so they are there without JavaScript as well; with
// it, they answer the mouse, fingers and arrow keys, and tables are sorted. What comes from a log, such as a client ID,
// is hostile text: it is escaped, and characters that cannot be printed are written as in a string of Go.
//
// The package computes no figures: they are those of the result.
package report
