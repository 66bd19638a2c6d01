// Package syntax reads and writes limits as operators write them: REQUESTS/WINDOW with options on a
// command line, and files of limits in YAML.
package syntax
