// Package token has the command that gets a token from an authorization server.
package token
