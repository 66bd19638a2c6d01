// Package report makes a page with charts from the result of a replay.
//
// The page is one self-contained HTML file. It loads no scripts, fonts or other files from a host;
// its content security policy forbids that. Its charts are drawn when the page is written, so they
// also appear without JavaScript. With JavaScript, they react to the mouse, fingers and arrow keys,
// and tables can be sorted. Text from a log, such as a client ID, is hostile. It is escaped, and
// unprintable characters are written as in a Go string.
//
// The package computes no figures: it shows the figures of the result.
package report
