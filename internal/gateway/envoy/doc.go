// Package envoy asks a [gateway.Judge] in the protocols of Envoy, over gRPC:
//
//   - the rate limit service v3 (envoy.service.ratelimit.v3), for those who have the client, and perhaps the user, of a token
//     request in descriptors already;
//   - external authorization v3 (envoy.service.auth.v3), with the token request itself, which is read like one at the
//     gateway.
//
// Envoy forwards the request in both cases and shows nothing of its answer, so a request that may pass counts at once. It
// decides also what happens while this service does not answer: failure_mode_deny, or failure_mode_allow.
//
// A descriptor, and what becomes of it:
//
//	client_id=shop, user=ada, grant_type=refresh_token      one request of ada at shop
//	client_id=shop, remote_address=192.0.2.1                one of shop whose user is not known, from that address
//	generic_key=slow_path                                   OK; not counted
//
// The package opens no listener and keeps nothing of a request. It bounds what a caller can send, and how much of it at once.
package envoy
