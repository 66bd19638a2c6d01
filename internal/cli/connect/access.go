package connect

import (
	"fmt"
	"slices"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/clientcfg"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// AccessFlag is the flag for a client's access to the admin API: --name for full access,
// --name=read for read-only access.
type AccessFlag struct{ Access clientcfg.Access }

// Add adds the flag to a command's flags.
func (f *AccessFlag) Add(flags *pflag.FlagSet, name, usage string) {
	flags.VarPF(f, name, "", usage).NoOptDefVal = "write"
}

// String implements pflag.Value.
func (f *AccessFlag) String() string { return string(f.Access) }

// Type implements pflag.Value. Returning "bool" makes the help show --name[=write], the form that
// works, and not a value after a space.
func (f *AccessFlag) Type() string { return "bool" }

// Set implements pflag.Value. It also accepts true and false, like a boolean flag.
func (f *AccessFlag) Set(s string) error {
	levels := map[string]clientcfg.Access{
		"read": clientcfg.ReadAccess, "write": clientcfg.WriteAccess, "true": clientcfg.WriteAccess, "false": clientcfg.NoAccess,
	}
	access, ok := levels[s]
	if !ok {
		return fmt.Errorf("%q is none of read, write", s)
	}
	f.Access = access
	return nil
}

// Unspaced wraps args and rejects a level after a space: pflag does not read it as the flag's
// value, so it would be used as a name.
func (f *AccessFlag) Unspaced(args cobra.PositionalArgs, name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		for _, level := range []string{"read", "write"} {
			if f.Access != clientcfg.NoAccess && slices.Contains(given, level) {
				return command.Usagef("%s%q stands by itself: write --%s=%s, without a space", command.Within(cmd), level, name, level)
			}
		}
		return args(cmd, given)
	}
}

// Apply lets the client get tokens for the admin API. It returns an error for a scope that
// contradicts the level: --admin together with the read scope would grant more than that scope asks
// for.
func (f *AccessFlag) Apply(spec *clientcfg.Client) error {
	read, write := slices.Contains(spec.Scopes, clientcfg.ScopeLimitsRead), slices.Contains(spec.Scopes, clientcfg.ScopeLimitsWrite)
	switch {
	case f.Access == clientcfg.WriteAccess && read && !write:
		return command.Usagef("--admin includes the scope %s: for a client that may only read, use --admin=read", clientcfg.ScopeLimitsWrite)
	case f.Access == clientcfg.ReadAccess && write:
		return command.Usagef("--admin=read is for a client that may only read: leave out the scope %s, or use --admin", clientcfg.ScopeLimitsWrite)
	case f.Access == clientcfg.ReadAccess:
		clientcfg.MakeReader(spec)
	case f.Access == clientcfg.WriteAccess:
		clientcfg.MakeOperator(spec)
	}
	return nil
}

// Upgrade lets an existing client get tokens for the admin API. With the level read, it also
// removes the client's write access.
func (f *AccessFlag) Upgrade(cl *clientcfg.Client) {
	switch f.Access {
	case clientcfg.ReadAccess:
		cl.Scopes = slices.DeleteFunc(cl.Scopes, func(s string) bool {
			return s == clientcfg.ScopeLimitsWrite || s == clientcfg.ScopeRegistrationsWrite
		})
		clientcfg.MakeReader(cl)
	case clientcfg.WriteAccess:
		clientcfg.MakeOperator(cl)
	default: // the flag was not given
	}
}

// Note warns about the grants of an admin client if users sign in through it.
func (f *AccessFlag) Note(c *command.Env, made *clientcfg.Client) {
	if f.Access == clientcfg.NoAccess || !made.ActsForUsers() {
		return
	}
	c.Note("When a user signs in through this client, the admin API accepts the token only if the user is an operator: oauth-server user operator NAME on|read")
	if made.May(clientcfg.ClientCredentials) {
		may := map[clientcfg.Access]string{clientcfg.ReadAccess: "read", clientcfg.WriteAccess: "read and change"}[f.Access]
		c.Note("With client_credentials, the secret of this client alone may %s limits, clients and users, and the audit trail then names no user. For users only, leave that grant out.", may)
	}
}
