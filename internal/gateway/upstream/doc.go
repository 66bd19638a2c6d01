// Package upstream sends token requests to the server behind a gateway, over persistent HTTP/1.1
// connections (RFC 9112).
//
// The goroutine of a request writes the request and reads the answer itself. In contrast, the
// Transport of net/http passes both between goroutines of the connection, which supports features
// that a gateway does not need. In BenchmarkForward on one processor, a request took 34 us, 42 us with
// the Transport, and 61 us with a [Resender], which keeps the first rule below. Since then the pool
// also writes the request itself, which takes a sixth less.
//
//   - A request is never repeated if the upstream may have received a part of it. Before writing,
//     the pool detects a persistent connection that the upstream has closed. If it detects that
//     only afterwards, and none of the request was acknowledged (Linux only), it sends the request
//     on another connection.
//   - A request ends with its context, or may outlive the context once it is written ([Pool.Send]).
//     The answer, including its body, has a time limit.
//   - There are no redirects, proxies, compression, cookies or HTTP/2. Interim answers (1xx) go to
//     the request's httptrace.
//
// All other requests go through a [Resender], which wraps the Transport of net/http and follows the
// same rule.
package upstream
