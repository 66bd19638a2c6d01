// Package tokenrequest parses a request to the token endpoint of another server and returns its
// client, grant and user. The gateway decides by the result and forwards the request unchanged. So
// if the server could read the request differently, parsing fails with an [*Error].
//
// The checked parameters are client_id, client_secret, grant_type, username, refresh_token, code,
// client_assertion and client_assertion_type.
//
//	what                                     read                       refused
//	client_id                                Basic (RFC 6749 2.3.1),    sources that differ
//	                                         body, sub of a JWT
//	Authorization                            Basic; another scheme      several fields, malformed Basic
//	                                         names no client, but for
//	                                         azp of the bearer token
//	                                         of the grant uma-ticket
//	client_assertion (RFC 7523)              sub, unverified; beside a  no type, no JWT with a sub
//	                                         client_id only if it is
//	                                         its own issuer
//	Content-Type                             form, JSON; utf-8; of a    others, other charsets and parameters
//	                                         form also iso-8859-1 and
//	                                         us-ascii, if the checked
//	                                         values are ASCII
//	body of a form                           as a form                  JSON
//	Content-Encoding                         identity                   others
//	Connection                               ignored                    naming one of those three
//	checked parameter                        once, in the body          repeated, in the query
//	other parameter (RFC 8707, RFC 8693)     ignored, also repeated     repeated in JSON
//	name that some server reads as a         -                          client.id, client id, client_id[],
//	checked one                                                         Client_ID, behind ";"
//	percent-encoding                         valid                      invalid, anywhere
//	checked value                            text; empty counts as      invalid UTF-8, control characters,
//	                                         omitted (RFC 6749 3.2)     spaces around it (username excepted)
//	checked value except client_id, username ASCII (RFC 6749, VSCHAR)   other characters
//	grant_type                               as sent                    a known grant in upper case
//	client_id, grant_type, username          up to 255 bytes            longer
//	number of parameters                     up to 1000, in JSON 64     more
//
// Multipart forms are refused, although PHP, servlet containers and Ory's fosite
// (ParseMultipartForm) accept them. OAuth does not use them, and their parsers differ a lot. A body
// of type text/plain or without a type is also refused, because some servers read it as JSON and
// others as a form.
//
// The package does no I/O, verifies nothing, and keeps only the SHA-256 of secrets. It returns
// names as sent and leaves letter case and Unicode normalization to the caller.
//
//	r, _, err := tokenrequest.Read(req.Header, req.URL.RawQuery, body)
//	var refused *tokenrequest.Error
//	if errors.As(err, &refused) { … } // 400, invalid_request, refused.Description
//	r.ClientID // "s6BhdRkqt3"
package tokenrequest
