// Package simulate shows which requests limits would refuse before the limits are enforced. It
// replays requests from a [traffic.Source] through the server's own decision code.
//
// [counting.Counters] decides and counts with the time of each request, package bans bans, and
// package limiter queues requests over the limit, on a clock that the requests drive. They are called
// in the same order as in package grants. The simulation has one process, which never loses a
// count.
//
// [Run] decides all requests under one set of policies. It can compare limits, and find the lowest
// limit that leaves a share of the clients or of the requests untouched. The log is read once.
// Requests that are needed again are kept in a temporary file. Memory depends on the number of
// clients with requests that did not fail, and on how many keys are counted at once, which is
// bounded. It does not depend on the length of the log.
//
// The package reads no log, and writes only that file.
package simulate
