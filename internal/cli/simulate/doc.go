// Package simulate has the command that replays a log under other limits.
package simulate
