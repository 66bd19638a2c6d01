package admin

import (
	_ "embed"
	"net/http"
	"slices"
	"strings"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/admin/targets"
	"oauth-server/internal/clientcfg"
)

// route is one operation of the API. The OpenAPI document is made from the routes and the types of
// their bodies: see TestDocument.
type route struct {
	method, path string // path in echo's notation, below adminapi.Prefix
	scope        string
	handle       handler
	doc          operation
}

// operation describes a route for its callers.
type operation struct {
	id   string
	text string // one line, and after it what else callers need to know
	// parameters are the query parameters. Others are refused. If-Match and If-None-Match say that
	// these headers have an effect.
	parameters []string
	in, out    any // bodies; nil for none
}

// Types of out for other statuses than 200 with a body, and 204 without.
type (
	created  struct{ body any }
	accepted struct{}
	file     struct{}
	either   []any
	anything struct{} // a JSON object
)

const (
	read  = clientcfg.ScopeLimitsRead
	write = clientcfg.ScopeLimitsWrite

	readRegistrations  = clientcfg.ScopeRegistrationsRead
	writeRegistrations = clientcfg.ScopeRegistrationsWrite
)

// Sets of parameters that several operations have.
var (
	page        = []string{"after", "limit", "prefix"}
	changing    = []string{"If-Match", "validate", "reason", "for"}
	registering = []string{"reason", "confirm"}
	conditional = []string{"If-Match", "reason", "confirm"}
)

func (s *Server) routes() []route {
	return slices.Concat(s.registrationRoutes(), s.limitRoutes(), []route{
		{http.MethodGet, "/unregistered", read, s.listUnregistered, operation{
			"listUnregistered", "List unregistered clients with limits", page, nil, adminapi.UnregisteredClients{},
		}},
		{http.MethodGet, "/clients/:client_id/counters", read, s.showCounters, operation{
			"getCounters", "Show the live counters of a client and its users", []string{"username", "limit"}, nil, adminapi.Counters{},
		}},
		{http.MethodDelete, "/clients/:client_id/counters", write, s.resetCounters, operation{
			"resetCounters", "Reset counters of a client\n" +
				"This applies to this instance and the store immediately, and to other instances within two seconds.",
			[]string{"username", "reason"},
			nil, nil,
		}},
		{http.MethodGet, "/bans", read, s.listBans, operation{
			"listBans", "List the bans", []string{"client_id", "mode", "ended", "after", "limit"}, nil, adminapi.Bans{},
		}},
		{http.MethodDelete, "/bans/:client_id", write, s.liftBan, operation{
			"liftBan", "Lift a ban\n" +
				"This applies to this instance immediately, and to the others within two seconds.",
			[]string{"username", "forget", "reason"},
			nil, nil,
		}},
		{http.MethodGet, "/top", read, s.top, operation{
			"getTop", "Show which clients ask the most, are near a limit, were denied or shed", []string{"limit", "client_id", "sort"}, nil, adminapi.Top{},
		}},
		{http.MethodGet, "/user-hash", read, s.userHash, operation{
			"getUserHash", "Show the user_hash of a user in the access log\n" +
				"It is the same on all instances and after restarts.",
			[]string{"username"},
			nil,
			adminapi.UserHash{},
		}},
		{http.MethodGet, "/audit", read, s.audit, operation{
			"listAudit", "List who changed what, newest first", []string{"before", "limit", "target"}, nil, adminapi.Audit{},
		}},
		{http.MethodGet, "/instances", read, s.instances, operation{
			"listInstances", "List the instances, and how current each is", nil, nil, adminapi.Instances{},
		}},
		{http.MethodGet, "/backup", writeRegistrations, s.backup, operation{
			"backUp", "Copy the data file of the embedded store\n" +
				"This needs the key beside the data file. If the body is shorter than Content-Length, the server " +
				"ended the copy: see its log.",
			[]string{"reason"},
			nil,
			file{},
		}},
		{http.MethodPost, "/restore", writeRegistrations, s.restore, operation{
			"restore", "Replace the data file with a file prepared beside it\n" +
				"This needs the key beside the data file. The server restarts with the new file, or with the old one " +
				"if it cannot use it.",
			[]string{"reason", "file"},
			nil,
			accepted{},
		}},
		{http.MethodGet, "/openapi.json", read, s.openAPI, operation{
			"getOpenAPI", "This document", nil, nil, anything{},
		}},
	})
}

// limitRoutes returns the routes for the settings, policies, tiers, limits of users and candidates.
func (s *Server) limitRoutes() []route {
	return slices.Concat(
		targetRoutes("/settings", "Settings", "the settings for all clients", s.onSettings, s, adminapi.Settings{}),
		targetRoutes("/policies/:client_id", "Policy", "a client's policy", s.onPolicy, s, adminapi.Policy{}),
		targetRoutes("/policies/:client_id/users/:username", "Override", "the limits of one user of a client", s.onOverride, s, adminapi.Override{}),
		targetRoutes("/tiers/:name", "Tier", "a tier", s.onTier, s, adminapi.Tier{}),
		targetRoutes("/candidates/:client_id", "Candidate", "a candidate", s.onCandidate, s, adminapi.Candidate{}),
		[]route{
			{http.MethodGet, "/policies", read, s.listPolicies, operation{
				"listPolicies", "List the policies", page, nil, adminapi.Policies{},
			}},
			{http.MethodGet, "/policies/:client_id/users", read, s.onPolicy(s.listOverrides), operation{
				"listOverrides", "List the users of a client with their own limits", page, nil, adminapi.Overrides{},
			}},
			{http.MethodGet, "/tiers", read, s.listTiers, operation{
				"listTiers", "List the tiers", page, nil, adminapi.Tiers{},
			}},
			{http.MethodGet, "/presets", read, s.listPresets, operation{
				"listPresets", "List limits that providers publish\nTo use one, set its lists.", nil, nil, adminapi.Presets{},
			}},
			{http.MethodGet, "/candidates", read, s.listCandidates, operation{
				"listCandidates", "List the candidates", page, nil, adminapi.Candidates{},
			}},
			{http.MethodPost, "/candidates/:client_id/promote", write, s.onCandidate(s.promote), operation{
				"promoteCandidate", "Make a candidate live\n" +
					"If-Match takes the ETag of the candidate. A trusted client is no longer trusted. The " +
					"response is the client's policy, or for _default the settings.",
				changing, nil,
				either{adminapi.Policy{}, adminapi.Settings{}},
			}},
			{http.MethodGet, "/changes", read, s.listChanges, operation{
				"getChanges", "Read everything that operators have set\n" +
					"With limit, the response is a page. Pages with the same ETag belong to the same state.",
				[]string{"after", "limit"},
				nil,
				adminapi.Set{},
			}},
			{http.MethodPost, "/changes", write, s.makeChanges, operation{
				"makeChanges", "Change several targets in one change\n" +
					"All of it is made or nothing, as one entry of the audit trail, which has at most 1 MiB: that is " +
					"about a thousand policies. Targets that have their value already are left out, and if nothing is " +
					"left there is no entry. If-Match takes the ETag of GET /changes, or *.",
				[]string{"If-Match", "validate", "reason"},
				adminapi.Changes{},
				adminapi.Changed{},
			}},
			{http.MethodPost, "/changes/:version/undo", write, s.undo, operation{
				"undoChange", "Undo a change\n" +
					"This is a change itself, which can be undone. If any of the targets was changed since, nothing is " +
					"undone (409). A reset of counters cannot be undone. A temporary value that would have ended by now " +
					"does not come back.",
				[]string{"validate", "reason"},
				nil,
				adminapi.Changed{},
			}},
		})
}

// targetRoutes returns the routes that read, replace, patch and remove a target. name is its name
// in operation IDs, and what describes it.
func targetRoutes(path, name, what string, on func(func(*call, targets.Target) error) handler, s *Server, view any) []route {
	setting := append([]string{"If-None-Match"}, changing...)
	return []route{
		{http.MethodGet, path, read, on(s.get), operation{
			"get" + name, "Read " + what, nil, nil, view,
		}},
		{http.MethodPut, path, write, on(s.put), operation{
			"put" + name, "Replace " + what, setting, view, view,
		}},
		{http.MethodPatch, path, write, on(s.patch), operation{
			"patch" + name, "Change parts of " + what + " (RFC 7396)", setting, anything{}, view,
		}},
		{http.MethodDelete, path, write, on(s.remove), operation{
			"delete" + name, "Remove " + what, changing, nil, nil,
		}},
	}
}

// registrationRoutes returns the routes for clients, users and their sign-ins.
func (s *Server) registrationRoutes() []route { return slices.Concat(s.clientRoutes(), s.userRoutes()) }

func (s *Server) clientRoutes() []route {
	client := "/clients/:client_id"
	return []route{
		{http.MethodGet, "/clients", read, s.listClients, operation{
			"listClients", "List the registered clients", append([]string{"grant_type", labelParameter}, page...), nil, adminapi.Clients{},
		}},
		{http.MethodPost, "/clients", writeRegistrations, s.createClient, operation{
			"createClient", "Register a client\n" +
				"Only this response contains its secret.",
			registering,
			adminapi.NewClient{},
			created{adminapi.Registered{}},
		}},
		{http.MethodGet, client, readRegistrations, s.onClient(s.showRegistration), operation{
			"getClient", "Read a client", nil, nil, adminapi.Registration{},
		}},
		{http.MethodPut, client, writeRegistrations, s.onClient(conditioned(s.putRegistration)), operation{
			"putClient", "Replace all metadata of a client (RFC 7592 2.2)", conditional, clientcfg.Metadata{}, adminapi.Registration{},
		}},
		{http.MethodPatch, client, writeRegistrations, s.onClient(conditioned(s.patchRegistration)), operation{
			"patchClient", "Change metadata of a client (RFC 7396)", conditional, anything{}, adminapi.Registration{},
		}},
		{http.MethodDelete, client, writeRegistrations, s.onClient(conditioned(s.deleteClient)), operation{
			"deleteClient", "Delete a client", conditional, nil, nil,
		}},
		{http.MethodGet, client + "/limits", readRegistrations, s.onClient(shows((*registry.Service).LimitsOf)), operation{
			"getClientLimits", "Show the limits and bans that operators have set for a client\n" +
				"They stay when the client is deleted.",
			nil, nil,
			registry.Limits{},
		}},
		{http.MethodPost, client + "/revoke", writeRegistrations, s.onClient(s.revokeClient), operation{
			"revokeClient", "Revoke all tokens and codes issued to a client so far", conditional, nil, adminapi.Registration{},
		}},
		{http.MethodGet, client + "/secrets", readRegistrations, s.onClient(s.listSecrets), operation{
			"listSecrets", "List the valid secrets of a client, with their last use and end", nil, nil, adminapi.Secrets{},
		}},
		{http.MethodPost, client + "/secrets", writeRegistrations, s.onClient(s.addSecret), operation{
			"addSecret", "Give a client a new secret\n" +
				"Only this response contains it.",
			conditional,
			registry.NewSecret{},
			created{adminapi.Registered{}},
		}},
		{http.MethodDelete, client + "/secrets/:id", writeRegistrations, s.onClient(s.retireSecret), operation{
			"retireSecret", "End a secret early\nYou cannot end the newest one.", conditional, nil, nil,
		}},
	}
}

func (s *Server) userRoutes() []route {
	user := "/users/:username"
	return []route{
		{http.MethodGet, "/users", readRegistrations, s.listUsers, operation{
			"listUsers", "List the users", page, nil, adminapi.Users{},
		}},
		{http.MethodPost, "/users", writeRegistrations, s.createUser, operation{
			"createUser", "Create a user", registering, registry.NewUser{}, created{registry.User{}},
		}},
		{http.MethodGet, user, readRegistrations, s.onUser(s.showUser), operation{
			"getUser", "Read a user", nil, nil, registry.User{},
		}},
		{http.MethodPatch, user, writeRegistrations, s.onUser(conditioned(s.patchUser)), operation{
			"patchUser", "Change the user's access to the admin API (RFC 7396)", conditional, anything{}, registry.User{},
		}},
		{http.MethodDelete, user, writeRegistrations, s.onUser(conditioned(s.deleteUser)), operation{
			"deleteUser", "Delete a user", conditional, nil, nil,
		}},
		{http.MethodPut, user + "/password", writeRegistrations, s.onUser(s.setPassword), operation{
			"setPassword", "Replace the password of a user, and end all sessions", conditional, adminapi.NewPassword{}, registry.User{},
		}},
		{http.MethodPost, user + "/revoke", writeRegistrations, s.onUser(changes((*registry.Service).RevokeUser)), operation{
			"revokeUser", "End the sessions and tokens of a user", registering, nil, registry.User{},
		}},
		{http.MethodPost, user + "/unlock", writeRegistrations, s.onUser(changes((*registry.Service).UnlockUser)), operation{
			"unlockUser", "Forget the wrong passwords of a user", registering, nil, registry.User{},
		}},
		{http.MethodGet, user + "/sessions", readRegistrations, s.onUser(shows((*registry.Service).Sessions)), operation{
			"listSessions", "List the browsers that a user is signed in with", nil, nil, registry.Sessions{},
		}},
		{http.MethodDelete, user + "/sessions", writeRegistrations, s.onUser(s.endSessions), operation{
			"endSessions", "End all sessions of a user", registering, nil, adminapi.Ended{},
		}},
		{http.MethodDelete, user + "/sessions/:id", writeRegistrations, s.onUser(s.endSessions), operation{
			"endSession", "End a session of a user", registering, nil, adminapi.Ended{},
		}},
		{http.MethodGet, user + "/families", readRegistrations, s.onUser(shows((*registry.Service).Families)), operation{
			"listFamilies", "List the families (refreshable sign-ins) of a user", nil, nil, registry.Families{},
		}},
		{http.MethodDelete, user + "/families", writeRegistrations, s.onUser(s.revokeFamilies), operation{
			"revokeFamilies", "Revoke all families of a user", registering, nil, adminapi.Ended{},
		}},
		{http.MethodDelete, user + "/families/:id", writeRegistrations, s.onUser(s.revokeFamilies), operation{
			"revokeFamily", "Revoke a family of a user", registering, nil, adminapi.Ended{},
		}},
		{http.MethodGet, user + "/consents", readRegistrations, s.onUser(shows((*registry.Service).Consents)), operation{
			"listConsents", "List a user's consents to clients", nil, nil, registry.Consents{},
		}},
		{http.MethodDelete, user + "/consents/:client_id", writeRegistrations, s.onUser(s.withdrawConsent), operation{
			"withdrawConsent", "Withdraw a user's consent to a client\n" +
				"This revokes all codes and tokens issued under it, immediately and on all instances.",
			registering, nil, nil,
		}},
	}
}

// checkQuery returns an error if the query has an unknown parameter, or one twice.
func (o *operation) checkQuery(c *call) error {
	known := slices.DeleteFunc(slices.Clone(o.parameters), func(name string) bool { return strings.HasPrefix(name, "If-") })
	for name, values := range c.query {
		switch {
		case !slices.Contains(known, name) && len(known) == 0:
			return problem.InvalidField(name, "unknown query parameter; this operation has none")
		case !slices.Contains(known, name):
			return problem.InvalidField(name, "unknown query parameter; the parameters are %s", strings.Join(known, ", "))
		case len(values) > 1 && name != labelParameter:
			return problem.InvalidField(name, "is in the query %d times", len(values))
		}
	}
	return nil
}

//go:generate go test -run TestDocument$ -update .

// document describes the API (OpenAPI 3.1). It is generated from the routes and the types of their
// bodies. Tests compare it with every answer.
//
//go:embed openapi.json
var document []byte

// openAPI returns the document.
func (s *Server) openAPI(c *call) error {
	c.write("application/json", http.StatusOK, document)
	return nil
}
