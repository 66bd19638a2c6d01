package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Beginning returns the texts with the prefix typed, sorted.
func Beginning(texts []string, typed string) []string {
	texts = slices.DeleteFunc(texts, func(s string) bool { return !strings.HasPrefix(s, typed) })
	slices.Sort(texts)
	return slices.Compact(texts)
}

// Completion returns what can follow the text typed so far, for the completion scripts of shells.
type Completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// Fixed completes one of the values.
func Fixed(values ...string) Completion {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}
