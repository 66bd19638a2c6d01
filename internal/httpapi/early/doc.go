// Package early answers token requests that an overloaded server refuses before net/http has read them. To read a request
// and find out that it is refused takes a third of what it takes to issue a token, so above some load refusing alone
// fills the processor. Here it takes a tenth of that.
//
// A [Listener] looks at the bytes with which a request begins. One that came whole in a single read, and says all that is
// needed in the plainest way, is put to the gate; if that refuses it the answer is written and the next one awaited. Everything
// else, and everything under TLS of this server, goes to net/http as it came, where the same gate decides. Nothing is
// ever admitted here, and while nothing is refused a read costs one more load from memory.
package early
