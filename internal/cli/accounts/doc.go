// Package accounts has the commands on clients and users, on a server or on a store.
package accounts
