// Package early answers token requests that an overloaded server refuses before net/http reads
// them. Reading and refusing a request in net/http costs a third of issuing a token, so above some
// load the refusals alone use up the processor. A refusal here costs a fraction of that.
//
// A [Listener] inspects the bytes at the start of each request. If a single read returns the whole
// request, the request is not the first of its connection, and it has the plainest form, the listener
// asks the [Refuser]. If the Refuser refuses the request, the
// listener writes the answer and waits for the next request. All other requests, and all requests
// over this server's TLS, go to net/http unchanged, and the same Refuser decides there. The listener
// never admits a request. While nothing is refused, a read costs one additional memory load.
package early
