package main

import "github.com/spf13/cobra"

// newSimulate holds the commands that try limits on simulated traffic.
func newSimulate(c *cli) *cobra.Command {
	return group("simulate", "Try limits on simulated traffic", newSimulateCluster(c))
}
