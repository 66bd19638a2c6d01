package traffic

import "fmt"

// Lines describes how logs were read. Every line is in one of the first three counts. In a file
// that is one JSON document, a value counts as a line. Parts that were split into several lines
// count as one line.
type Lines struct {
	Read    uint64 `json:"read"`    // as a token request
	Unread  uint64 `json:"unread"`  // cannot be read, or are too far from their place in time
	Skipped uint64 `json:"skipped"` // not about a token request
	// Reordered is how many of the read lines came before an earlier one, and were put in order.
	Reordered uint64  `json:"reordered"`
	Causes    []Cause `json:"causes,omitempty"` // of the unread lines, most frequent first
	Files     []File  `json:"files,omitempty"`
}

// File is a log and its format. The format is empty for a file without content.
type File struct {
	Name   string `json:"name"`
	Format string `json:"format"`
}

// Cause is a reason why lines could not be read.
type Cause struct {
	Field   string `json:"field"` // the log's name of the field; line or file if the whole is invalid
	Problem string `json:"cause"`
	Lines   uint64 `json:"lines"`
	First   string `json:"first"` // FILE:LINE of the first of them
}

// String returns the cause and its first line.
func (c *Cause) String() string { return fmt.Sprintf("%s: %s: %s", c.First, c.Field, c.Problem) }
