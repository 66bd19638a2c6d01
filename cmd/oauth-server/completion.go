package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// beginning returns the texts with the prefix typed, sorted.
func beginning(texts []string, typed string) []string {
	texts = slices.DeleteFunc(texts, func(s string) bool { return !strings.HasPrefix(s, typed) })
	slices.Sort(texts)
	return slices.Compact(texts)
}

type completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

func fixed(values ...string) completion {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}
