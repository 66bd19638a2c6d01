package metrics

// Connections to the listeners.
var (
	connectionsInfo = Info{
		"oauth_connections", Gauge,
		[]string{"listener"},
		"Open connections. Listener: clients, operators or envoy.",
	}
	connectionsMaxInfo = Info{
		"oauth_connections_max", Gauge,
		[]string{"listener"},
		"Maximum of open connections, from the files and the memory that the process may use. One source may have a quarter of them; of operators and Envoy, half.",
	}
	streamsInfo = Info{
		"oauth_connections_streams", Gauge,
		[]string{"listener"},
		"HTTP/2 requests in progress. They have the same maximum as connections.",
	}
	connectionsExcessInfo = Info{
		"oauth_connections_excess_total", Counter,
		[]string{"listener", "outcome"},
		"Connections and HTTP/2 requests over the maximum. Outcomes: source (refused: too many from its source), total (refused: too many), silent (an idle connection was closed to make room).",
	}
)

// Connections is the state of a listener.
type Connections struct {
	Listener             string
	Open, Requests, Most int
	Refusals
}

// Refusals counts the entries that were over the bound of a listener.
type Refusals struct{ Source, Total, Silent uint64 }

// WatchConnections exports the result of read at each scrape.
func (m *Metrics) WatchConnections(read func() []Connections) {
	m.pull.watch("connections", func(emit emit) {
		for _, c := range read() {
			emit(connectionsInfo, float64(c.Open), c.Listener)
			emit(streamsInfo, float64(c.Requests), c.Listener)
			emit(connectionsMaxInfo, float64(c.Most), c.Listener)
			emit(connectionsExcessInfo, float64(c.Source), c.Listener, "source")
			emit(connectionsExcessInfo, float64(c.Total), c.Listener, "total")
			emit(connectionsExcessInfo, float64(c.Silent), c.Listener, "silent")
		}
	})
}
