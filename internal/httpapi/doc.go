// Package httpapi implements the server's public HTTP endpoints: the OAuth endpoints for clients,
// the sign-in and consent pages for people, metadata, keys and health.
//
// Parsing is strict and bounded. A malformed request gets the answer that the RFCs specify before
// any other package sees it. Decisions are left to a [Service]. One file each writes OAuth answers
// (errors.go), pages (pages.go) and redirects to clients (redirect.go).
//
// The package never accesses a store and keeps no state between requests. It never logs a body, a
// query or a header that could contain a secret. It redirects only to addresses from a valid
// [grants.Prompt] or [grants.RedirectError].
//
//	server, err := httpapi.New(httpapi.Options{
//		Issuer:  "https://id.example.com",
//		Service: service,
//		Keys:    ring,
//		Ready:   func(context.Context) httpapi.Readiness { return httpapi.Readiness{Status: httpapi.Ready} },
//		Logger:  logger,
//	})
//	err = (&http.Server{Handler: server}).Serve(listener)
package httpapi
