package main

import (
	"context"
	"fmt"
	"time"

	"oauth-server/lab/servers"
)

func startOf(clients int) string { return fmt.Sprintf("start with %d clients", clients) }

func prepareStart(ctx context.Context, s *side) error {
	for _, n := range s.clients {
		if err := s.newFile(startOf(n)).Import(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func measureStart(ctx context.Context, s *side) error {
	for _, n := range s.clients {
		err := s.serving(ctx, startOf(n), func(i *instance) error {
			used, err := i.Processor()
			s.note(startOf(n)+", s", i.Took.Seconds())
			s.note(startOf(n)+", processor s", used.Seconds())
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func prepareFollow(ctx context.Context, s *side) error {
	st, err := s.newDatabase(ctx, "follow")
	if err != nil {
		return err
	}
	if err := st.Import(ctx, s.followed); err != nil {
		return err
	}
	file := s.newFile("follow in a file")
	if err := register(ctx, file); err != nil {
		return err
	}
	return file.Import(ctx, s.followedInFile)
}

func measureFollow(ctx context.Context, s *side) error {
	what := fmt.Sprintf("MongoDB, %d clients: processor time to follow one change, ms", s.followed)
	err := s.follow(ctx, "follow", what, min(s.followed, 100), func(_ *instance, args ...string) error {
		_, err := s.stores["follow"].Command(ctx, "", args...)
		return err
	})
	if err != nil {
		return err
	}
	what = fmt.Sprintf("File, %d clients: processor time for one change, ms", s.followedInFile)
	return s.follow(ctx, "follow in a file", what, min(s.followedInFile, 100), func(i *instance, args ...string) error {
		return i.Administer(ctx, operator, args...)
	})
}

// follow changes clients one by one. What an instance uses meanwhile, without what it uses at rest, is for the changes.
func (s *side) follow(ctx context.Context, use, what string, changes int, change func(i *instance, args ...string) error) error {
	return s.serving(ctx, use, func(i *instance) error {
		if err := servers.Pause(ctx, 5*time.Second); err != nil {
			return err
		}
		rest, restTook, err := servers.Spent(func() error { return servers.Pause(ctx, 10*time.Second) }, i.Server)
		if err != nil {
			return err
		}
		used, took, err := servers.Spent(func() error {
			for k := range changes {
				if err := change(i, "client", "update", servers.ImportedClient(k), "--name=changed at "+time.Now().String()); err != nil {
					return err
				}
				if err := servers.Pause(ctx, 50*time.Millisecond); err != nil {
					return err
				}
			}
			return servers.Pause(ctx, 2*time.Second)
		}, i.Server)
		s.note(what, 1000*(used-rest/restTook*took)/float64(changes))
		return err
	})
}

func prepareIdle(ctx context.Context, s *side) error {
	st, err := s.newDatabase(ctx, "idle")
	if err != nil {
		return err
	}
	if err := register(ctx, st); err != nil {
		return err
	}
	return s.serving(ctx, "idle", func(i *instance) error { // some builds ask for more until there is a policy
		return i.Administer(ctx, operator, "limits", "set", shop, "--user=1000000/60s", "--yes")
	})
}

// measureIdle counts the commands of two instances that have nothing to do.
func measureIdle(ctx context.Context, s *side) error {
	proxy, err := servers.NewProxy(ctx, s.uri)
	if err != nil {
		return err
	}
	through := *s.stores["idle"]
	through.URI = proxy.URI
	commands := func() (sum int64) {
		for _, t := range proxy.Traffic() {
			sum += t.Commands
		}
		return sum
	}
	count := func(*servers.Server) error {
		if err := servers.Pause(ctx, s.idle/3); err != nil {
			return err
		}
		before := commands()
		err := servers.Pause(ctx, s.idle)
		s.note("MongoDB: idle commands per instance and minute", float64(commands()-before)/2/s.idle.Minutes())
		return err
	}
	err = through.Serving(ctx, config, func(*servers.Server) error { return through.Serving(ctx, config, count) })
	if err != nil {
		return err
	}
	return proxy.Close()
}
