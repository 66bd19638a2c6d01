// Package httpapi is the server's public HTTP side: the OAuth endpoints for clients, the sign-in
// and consent pages for people, metadata, keys and health.
//
// Reading is strict and bounded: what is not a well-formed request gets the answer that the RFCs
// name, before any other package sees it. Decisions are left to the small interfaces that the
// package declares ([Tokens], [Authorizations], [Sessions], [Inspector]); grants.Service implements
// them all. There is one place each that writes OAuth answers (errors.go), pages (pages.go) and
// redirects to clients (redirect.go).
//
// It never touches a store, keeps no state between two requests, never logs a body, a query or a
// header that could hold a secret, and never redirects to an address that did not come from a valid
// [grants.Prompt] or a [grants.RedirectError].
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
