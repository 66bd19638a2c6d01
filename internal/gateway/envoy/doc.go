// Package envoy serves a [gateway.Decider] over Envoy's gRPC protocols:
//
//   - the rate limit service v3 (envoy.service.ratelimit.v3), for configurations that already put
//     the client, and perhaps the user, of a token request in descriptors;
//   - external authorization v3 (envoy.service.auth.v3), with the token request itself, which is
//     parsed as at the gateway.
//
// In both cases Envoy forwards the request and does not show its answer, so a request that may pass
// counts at once. Envoy also decides what happens while this service does not answer:
// failure_mode_deny or failure_mode_allow.
//
// Descriptors and their results:
//
//	client_id=shop, user=ada, grant_type=refresh_token      one request of ada at shop
//	client_id=shop, remote_address=192.0.2.1                one request of shop, unknown user, from that address
//	generic_key=slow_path                                   OK; not counted
//
// The package opens no listener and stores nothing about a request. It limits the size of a
// caller's messages and the number of concurrent calls.
package envoy
