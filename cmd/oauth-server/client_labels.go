package main

import (
	"strings"

	"github.com/spf13/pflag"

	"oauth-server/internal/clientcfg"
)

// labelFlags are --label and, for an existing client, --remove-label.
type labelFlags struct {
	pairs, remove []string
	set           clientcfg.Labels // KEY=VALUE pairs, once checked
}

func (f *labelFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.pairs, "label", nil, "label of the client, as name=value, by which clients can be found; may be repeated")
}

func (f *labelFlags) addRemove(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.remove, "remove-label", nil, "name of a label to remove; may be repeated")
}

func (f *labelFlags) check() (err error) {
	if f.set, err = clientcfg.ParseLabels(f.pairs); err != nil {
		return &usageError{err}
	}
	for _, name := range f.remove {
		if strings.Contains(name, "=") {
			return usagef("--remove-label %s: give the name of the label, without a value", name)
		}
	}
	return nil
}

// apply sets and removes the named labels and keeps all others.
func (f *labelFlags) apply(cl *clientcfg.Client) {
	cl.Labels = cl.Labels.Without(f.remove...).With(f.set)
}

// selectorFlag adds --label to a command that selects clients.
func selectorFlag(flags *pflag.FlagSet, labels *[]string) {
	flags.StringArrayVar(labels, "label", nil, "only those with this label: name=value, or a name with any value; may be repeated, for clients that have all")
}

func checkSelectors(labels []string) error {
	for _, label := range labels {
		if err := clientcfg.CheckSelector(label); err != nil {
			return usagef("--label: %w", err)
		}
	}
	return nil
}
