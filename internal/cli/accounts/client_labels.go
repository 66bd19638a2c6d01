package accounts

import (
	"strings"

	"github.com/spf13/pflag"

	"oauth-server/internal/cli/command"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/labels"
)

// labelFlags are --label and, for an existing client, --remove-label.
type labelFlags struct {
	pairs, remove []string
	set           labels.Set // KEY=VALUE pairs, once checked
}

func (f *labelFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.pairs, "label", nil, "label, as `NAME=VALUE`; repeatable")
}

func (f *labelFlags) addRemove(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.remove, "remove-label", nil, "`NAME` of a label to remove; repeatable")
}

func (f *labelFlags) check() (err error) {
	if f.set, err = labels.Parse(f.pairs); err != nil {
		return command.Usage(err)
	}
	for _, name := range f.remove {
		if strings.Contains(name, "=") {
			return command.Usagef("--remove-label %s: give the name of the label, without a value", name)
		}
	}
	return nil
}

// Apply sets and removes the named labels and keeps all others.
func (f *labelFlags) apply(cl *clientcfg.Client) {
	cl.Labels = cl.Labels.Without(f.remove...).With(f.set)
}

// selectorFlag adds --label to a command that selects clients.
func selectorFlag(flags *pflag.FlagSet, selectors *[]string) {
	flags.StringArrayVar(selectors, "label", nil, "only clients with the label `NAME[=VALUE]`; repeat to require several")
}

func checkSelectors(selectors []string) error {
	for _, label := range selectors {
		if err := labels.CheckSelector(label); err != nil {
			return command.Usagef("--label: %w", err)
		}
	}
	return nil
}
