// Package grants decides who gets a token: it authenticates clients, checks
// each grant, asks the limiter, claims what is to be claimed and issues.
package grants
