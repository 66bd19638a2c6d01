package accounts

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/clientcfg"
)

// accessFlag is the flag for a client's access to the admin API: --name for full access,
// --name=read for read-only access.
type accessFlag struct{ level clientcfg.Access }

// add adds the flag to a command's flags.
func (f *accessFlag) add(flags *pflag.FlagSet, name, usage string) {
	flags.VarPF(f, name, "", usage).NoOptDefVal = "write"
}

// String implements pflag.Value.
func (f *accessFlag) String() string { return string(f.level) }

// Type implements pflag.Value. Returning "bool" makes the help show --name[=write], the form that
// works, and not a value after a space.
func (f *accessFlag) Type() string { return "bool" }

// Set implements pflag.Value. It also accepts true and false, like a boolean flag.
func (f *accessFlag) Set(s string) error {
	levels := map[string]clientcfg.Access{
		"read": clientcfg.ReadAccess, "write": clientcfg.WriteAccess, "true": clientcfg.WriteAccess, "false": clientcfg.NoAccess,
	}
	access, ok := levels[s]
	if !ok {
		return fmt.Errorf("%q is not one of read, write", s)
	}
	f.level = access
	return nil
}

// unspaced wraps args and rejects a level after a space: pflag does not read it as the flag's
// value, so it would be used as a name.
func (f *accessFlag) unspaced(args cobra.PositionalArgs, name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		for _, level := range []string{"read", "write"} {
			if f.level != clientcfg.NoAccess && slices.Contains(given, level) {
				return command.Usagef("%s%q is a separate argument: write --%s=%s, without a space", command.Within(cmd), level, name, level)
			}
		}
		return args(cmd, given)
	}
}

// check returns an error for scopes of a new client that contradict the level: --admin together with the
// read scope would grant more than that scope asks for.
func (f *accessFlag) check(scopes []string) error {
	read, write := slices.Contains(scopes, clientcfg.ScopeLimitsRead), slices.Contains(scopes, clientcfg.ScopeLimitsWrite)
	switch {
	case f.level == clientcfg.WriteAccess && read && !write:
		return command.Usagef("--admin adds the scope %s: for a read-only client, use --admin=read", clientcfg.ScopeLimitsWrite)
	case f.level == clientcfg.ReadAccess && write:
		return command.Usagef("--admin=read is for a read-only client: leave out the scope %s, or use --admin", clientcfg.ScopeLimitsWrite)
	}
	return nil
}

// apply lets a client get tokens for the admin API. The level read takes its write access away.
func (f *accessFlag) apply(cl *clientcfg.Client) {
	switch f.level {
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

// warn warns about the grants of an admin client if users sign in through it.
func (f *accessFlag) warn(c *command.Env, made *clientcfg.Client) {
	if f.level == clientcfg.NoAccess || !made.ActsForUsers() {
		return
	}
	c.Note("The admin API accepts tokens of users of this client only if they are operators: oauth-server user operator NAME on|read")
	if made.May(clientcfg.ClientCredentials) {
		may := map[clientcfg.Access]string{clientcfg.ReadAccess: "read", clientcfg.WriteAccess: "read and change"}[f.level]
		c.Note("With the client_credentials grant, the client's secret alone is enough to %s limits, clients and users, and the audit trail names no user. To require a user, leave that grant out.", may)
	}
}
