// Package httpapi is the server's face to the outside: the OAuth endpoints for
// clients, the sign-in and consent pages for people, metadata, keys and health.
//
// It reads, asks and writes. Reading is strict and bounded: what is not a
// well-formed request gets the answer that the RFCs name before anybody else
// sees it. Deciding is left to the small interfaces that the package declares
// ([Tokens], [Authorizations], [Sessions], [Inspector]); grants.Service
// satisfies them all. Writing happens in one place each for OAuth answers
// (errors.go), for pages (pages.go) and for redirects to clients (redirect.go).
//
// It never touches a store, never keeps state of its own between two requests,
// never logs a body, a query or a header that could hold a secret, and never
// redirects to an address that it did not get from a valid [grants.Prompt] or a
// [grants.RedirectError].
//
//	server, err := httpapi.New(httpapi.Options{
//		Issuer:         "https://id.example.com",
//		Tokens:         service,
//		Authorizations: service,
//		Sessions:       service,
//		Inspector:      service,
//		Keys:           ring,
//		Ready:          func(context.Context) httpapi.Readiness { return httpapi.Readiness{Status: httpapi.Ready} },
//		Logger:         logger,
//	})
//	err = (&http.Server{Handler: server}).Serve(listener)
package httpapi
