// Package e2e holds tests only. They build the command, start it as its own
// process and talk to it over TCP as strangers do: with golang.org/x/oauth2, with
// forms driven over HTTP, with bad input, and with kill -9.
//
// Nothing here knows how the server is made; what it relies on is the command
// line, the configuration file, the log line "listening", and the RFCs.
package e2e
