// Package overload measures what becomes of requests when more are offered than the server can answer, each client below its
// limit, with admission control and without.
//
// The server has one processor, callers have the other. They do not wait for each other (package openloop), and hang up
// after a second. Capacity is measured first, for the mix: sign-ins cost a hundred times as much as tokens. All loads
// are multiples of it.
//
// A [Report] is what a run finds, as JSON. Command overload writes it as a page and a chart.
package overload
