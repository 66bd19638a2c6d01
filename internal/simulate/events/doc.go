// Package events reads token requests from the logs of identity providers, in the order of their
// time.
//
// A file is read line by line, or value by value if it is one JSON document. gzip and zstd are
// recognised by their first bytes. Because logs are large, handwritten code extracts a few fields
// of each line. Lines that are slightly out of order are sorted within a buffer, several files are
// merged, and memory stays bounded whatever the size of the log. Unreadable lines are counted by
// cause, with the first line of each.
//
// One parser reads all formats. It picks fields by their paths, columns or parts of a line, and
// applies rules to them. Each provider is a preset of data, and a [Mapping] of a user compiles to
// the same parser. To add a provider, add its preset, its name to [Formats] and detectionOrder, and
// lines of its log to testdata, TestFormats and docs/simulate.md.
//
// The package writes nothing, follows no link in a log, and opens only the given files.
package events
