package events

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// wrapper extracts a program's own line from the wrapping of log collectors.
type wrapper struct {
	scanner
	root  *node
	stamp []byte // when the line was collected, for lines without a time; empty: unknown
}

// wrappedIn are the members with the wrapped line, as text or as an object: of Docker, Fluent Bit
// and Fluentd, of Filebeat, Logstash and Vector, journald, Google Cloud, Loki, Splunk,
// OpenTelemetry, Elasticsearch, CloudWatch, Azure, Graylog and Datadog.
var wrappedIn = []string{
	".log", ".message", ".MESSAGE", ".textPayload", ".line", "._raw", ".event", ".body", ".stringValue", `."@message"`, ".LogMessage", ".LogEntry",
	".full_message", ".short_message", ".msg", "[1]", ".jsonPayload", ".log_processed", ".json", "._source", ".result", ".content", ".attributes",
}

// collectedAt are the members with the time of collection. The last one present counts.
var collectedAt = []string{
	".TimeGenerated", "._time", ".ts", ".__REALTIME_TIMESTAMP", ".date", ".time", `."@timestamp"`, ".timestamp", "[0]",
}

// deepestWrapper bounds how many wrappers can be nested.
const deepestWrapper = 4

// The slots of a wrapper. The members with the line have the slots from 1 on.
var (
	stampSlot  = len(wrappedIn) + 1
	streamSlot = len(wrappedIn) + 2 // of Docker
)

func newWrapper() *wrapper {
	w := &wrapper{root: &node{}, scanner: newScanner(streamSlot + 1)}
	for i, path := range wrappedIn {
		_ = w.root.add(path, i+1, 0) // these paths are constants
	}
	for rank, path := range collectedAt {
		_ = w.root.add(path, stampSlot, rank)
	}
	_ = w.root.add(".stream", streamSlot, 0)
	return w
}

// unwrap returns the inner line of an object, or of an array of a time and a line. It also takes
// the time from the wrapper.
func (w *wrapper) unwrap(line []byte) (inner []byte, ok bool) {
	line = bytes.TrimSpace(line)
	from := bytes.IndexByte(line, '{')
	if len(line) > 0 && line[0] == '[' {
		from = 0
	}
	if from < 0 {
		return nil, false
	}
	w.buf = make([]byte, 0, len(line)) // a new one: the line may be in the old one
	w.clear()
	if w.value(line, from, w.root) != len(line) {
		return nil, false
	}
	inner, ok = pick(w.values[1:stampSlot])
	if at := w.values[stampSlot]; ok && at.present() {
		w.stamp = append(w.stamp[:0], at.text()...)
	}
	return inner, ok
}

// pick returns the first of the values that is text. Without text it returns the first object, or
// text as bytes.
func pick(values []value) (inner []byte, ok bool) {
	for _, v := range values {
		switch {
		case v.kind == plain:
			if text := bytes.TrimRight(v.raw, "\r\n"); len(text) > 0 {
				return text, true
			}
			ok = true // without other text, the line is blank
		case v.kind == composite && v.raw[0] == '[':
			if text := bytesOf(v.raw); len(text) > 0 {
				return text, true
			}
		}
	}
	if i := slices.IndexFunc(values, func(v value) bool { return v.kind == composite && v.raw[0] == '{' }); i >= 0 {
		return values[i].raw, true
	}
	return nil, ok
}

// bytesOf decodes an array of bytes. journald writes data that it does not treat as text in this
// form. The result is nil if the array has other values.
func bytesOf(array []byte) (text []byte) {
	for one := range bytes.SplitSeq(array[1:len(array)-1], []byte{','}) {
		n, err := strconv.ParseUint(string(bytes.TrimSpace(one)), 10, 8)
		if err != nil {
			return nil
		}
		text = append(text, byte(n))
	}
	return bytes.TrimRight(text, "\r\n")
}

// dockerPiece is the maximum part of a line in one line of Docker. A longer line is split into
// several.
const dockerPiece = 16 << 10

// container returns the original line of a container if a runtime wrapped it, or else the line
// itself. Docker's driver json-file writes {"log":"…\n","stream":"stdout","time":"…"}. Other runtimes
// put the time, the stream and a tag before the line. The stream is empty for a line that is not of a
// container. A runtime mixes the lines of two streams; goesOn reports whether the next line of the
// same stream continues it. container also unwraps one other unmistakable form: an array of a time
// and a line, as in Loki.
func (w *wrapper) container(line []byte) (inner []byte, stream string, goesOn bool) {
	switch {
	case bytes.HasPrefix(line, []byte(`{"log":"`)):
		inner, ok := w.unwrap(line)
		stream := string(w.values[streamSlot].raw)
		if !ok || !strings.HasPrefix(stream, "std") {
			w.stamp = w.stamp[:0]
			break
		}
		return inner, stream, len(inner) >= dockerPiece && !bytes.HasSuffix(w.values[1].raw, []byte{'\n'})
	case bytes.HasPrefix(line, []byte(`["`)):
		if inner, ok := w.unwrap(line); ok {
			return inner, "", false
		}
	case len(line) > 20 && line[4] == '-' && line[10] == 'T':
		parts := bytes.SplitN(line, []byte{' '}, 4) // time, stream, tag, line
		if len(parts) < 4 || !bytes.HasPrefix(parts[1], []byte("std")) {
			break
		}
		goesOn = bytes.HasPrefix(parts[2], []byte{'P'})
		if goesOn || bytes.HasPrefix(parts[2], []byte{'F'}) {
			w.stamp = append(w.stamp[:0], parts[0]...)
			return parts[3], string(parts[1]), goesOn
		}
	}
	return line, "", false
}
