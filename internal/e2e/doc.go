// Package e2e holds tests only. They build the command, start it as a process of its own and use it
// over TCP: with golang.org/x/oauth2, with forms driven over HTTP, with bad input, and with kill -9.
//
// The tests rely on the command line, the configuration file, log lines, metrics and the RFCs, and
// on the documents of the counters in MongoDB.
package e2e
