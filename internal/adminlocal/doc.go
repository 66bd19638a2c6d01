// Package adminlocal lets commands on the machine of a server with an embedded store use its admin API:
// the file beside the data file says where it is served, and holds a key that makes the reader an
// operator. It can be read by the owner of the data file only, who could open that as well if no server
// held it, so it gives no account more than it has.
//
// The key lasts as long as the server runs. Before a command sends anything, the server proves that it
// has the same key: an address that is left over may be that of another program by now. With TLS the
// connection itself proves it, by a certificate that follows from the key.
package adminlocal
