// Package simulate says who would be hit by limits before anyone is: it replays requests, as a [traffic.Source] yields
// them, through the code that decides in the server.
//
// [ratelimit.Counters] decides and counts with the time of each request, package bans bans, and package turns holds
// requests over the limit, on a clock that the requests drive. The order in which they are asked is that of package
// grants. One process is simulated, which never loses a count.
//
// [Run] judges all requests under one set of policies. It can compare limits, and find the lowest one that leaves a
// share of the clients or of the requests untouched. The log is read once: what is needed again is kept in a temporary
// file. Memory depends on how many clients have requests that did not fail, and on how many keys are counted at once, which
// is bounded; not on how long the log is.
//
// The package reads no log, and writes nothing but that file.
package simulate
