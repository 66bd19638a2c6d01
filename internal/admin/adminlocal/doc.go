// Package adminlocal lets commands on the machine of a server with an embedded store use its admin
// API. A file beside the data file contains the API's address and a key that makes its reader an
// operator. Only the owner of the data file can read it. The owner could open the data file itself
// if no server held it, so the key grants no additional rights.
//
// The key lasts as long as the server runs. Before a command sends anything, the server proves that
// it has the same key, because another program may now listen at a left-over address. With TLS the
// connection itself is the proof, with a certificate derived from the key.
package adminlocal
