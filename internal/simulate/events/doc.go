// Package events reads what identity providers write in their logs as token requests, in the order of their time.
//
// A file is read line by line, or value by value if it is one JSON document; gzip and zstd are recognised by their
// first bytes. Of each line a few fields are picked out by hand, since logs are large. Lines that are slightly out
// of order are put in order within a buffer, several files are merged, and memory stays bounded whatever the size of
// the log. What cannot be read is counted by its cause, with the first line of each.
//
// It writes nothing, follows no link in a log, and opens only the files that it is given.
package events
