// Package connbound bounds the connections of the server's listeners, and the requests on their
// HTTP/2 connections, so that one source cannot use up the files and the memory of the process.
//
//	bounds := connbound.New(cfg, connbound.OpenFiles(), memory, storeConnections, logger)
//	server := &http.Server{
//		Handler:     bounds.Clients.Around(handler),
//		ConnState:   connbound.TrackSilence,
//		ConnContext: connbound.WithHeld,
//	}
//	err := server.Serve(bounds.Clients.Listener(listener))
package connbound
