// Package upstream sends token requests to the server behind a gateway, over HTTP/1.1 connections that it keeps (RFC 9112).
//
// The goroutine that has a request writes it, and reads the answer itself. The Transport of net/http passes each request and
// each answer between goroutines of the connection instead, in whose place it can do much that a gateway has no use for: that took
// more of the processor than everything else about a request.
//
//   - A request that the upstream may have got something of is never repeated. A kept connection that the upstream has closed meanwhile
//     is noticed before a request is written to it, or else by that nothing of it was acknowledged (Linux only): it goes out on
//     another one then.
//   - It ends with its context, or outlives it once it is written ([Pool.Send]), and its answer must have come in within a time,
//     the body included.
//   - There is no redirect, no proxy, no compression, no cookie, no HTTP/2. Interim answers (1xx) are for the request's httptrace.
//
// Everything but token requests goes through a [Resender], which is the Transport of net/http with the same rule.
package upstream
