package mongotest

import (
	"net"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/store/mongo/wire"
)

// Alteration makes a server behave like another one. Each function may be nil. Commands and replies
// are documents, the writes of a command an array in it.
type Alteration struct {
	// Answer returns the reply to a command. If it is nil, the server gets the command.
	Answer func(command bson.D) bson.D
	// Request returns the command that the server gets.
	Request func(command bson.D) bson.D
	// Reply returns the reply that the client gets.
	Reply func(command, reply bson.D) bson.D
}

// Alter changes what passes through the proxy from now on.
func (p *Proxy) Alter(a Alteration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alteration = a
}

// forward sends a request to the server and returns its reply, both altered.
func (p *Proxy) forward(server net.Conn, request wire.Message) (wire.Message, error) {
	p.mu.Lock()
	a := p.alteration
	p.mu.Unlock()
	if commandName(request) == "" || a.Answer == nil && a.Request == nil && a.Reply == nil {
		return roundTrip(server, request)
	}
	command, err := decoded(request)
	if err != nil {
		return nil, err
	}
	id := request.ID()
	if a.Answer != nil {
		if answer := a.Answer(command); answer != nil {
			return wire.New(withWireVersion(command, answer), 0, id)
		}
	}
	if a.Request != nil {
		if request, err = wire.New(a.Request(command), id, 0); err != nil {
			return nil, err
		}
	}
	reply, err := roundTrip(server, request)
	if err != nil || a.Reply == nil {
		return reply, err
	}
	doc, err := decoded(reply)
	if err != nil {
		return nil, err
	}
	return wire.New(a.Reply(command, doc), 0, id)
}

// withWireVersion adds the wire versions to the reply to a greeting, unless it has them. The driver
// requires them: it also sends hello to a server that offers it, and would treat a server as too
// old if the reply lacks them.
func withWireVersion(command, answer bson.D) bson.D {
	greeting := slices.Contains([]string{"hello", "isMaster", "ismaster"}, command[0].Key)
	if !greeting || slices.ContainsFunc(answer, func(e bson.E) bool { return e.Key == "maxWireVersion" }) {
		return answer
	}
	return append(slices.Clone(answer), bson.E{Key: "minWireVersion", Value: 0}, bson.E{Key: "maxWireVersion", Value: 21})
}

func roundTrip(server net.Conn, request wire.Message) (reply wire.Message, err error) {
	if _, err := server.Write(request); err != nil {
		return nil, err
	}
	return wire.Read(server)
}
