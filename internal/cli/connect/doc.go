// Package connect finds the server or the store that a command works on: a server by its address and
// the credentials of an admin client, a store by the settings, or the server that holds a data file.
package connect
