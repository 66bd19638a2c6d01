// Command oauth-server is an OAuth 2.0 authorization server with a token endpoint that
// is rate limited per client and user.
//
//	oauth-server serve --demo
//
// Exit status: 0 for success (serve: after SIGTERM or SIGINT), 2 for a
// wrong command line or configuration, 1 for anything else. Errors go to
// standard error, one line each; answers to standard output, as text for
// people or, with -o json, as JSON for scripts.
package main

import "oauth-server/internal/cli"

func main() { cli.Main() }
