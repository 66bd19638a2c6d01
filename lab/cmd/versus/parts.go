package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"oauth-server/internal/store/mongo/wire"
)

const many = 64 // connections

func prepareFile(ctx context.Context, s *side) error {
	st := s.newFile("rates")
	s.stores["file"] = st
	if err := st.register(ctx); err != nil {
		return err
	}
	if err := st.serving(ctx, func(i *instance) error { return i.signIn(many) }); err != nil {
		return err
	}
	before, err := st.bytesInUse()
	if err != nil {
		return err
	}
	own := *st // what follows adds no tokens to refresh
	err = own.serving(ctx, func(i *instance) error { return i.signIn(signIns) })
	after, failed := st.bytesInUse()
	s.note("bytes per sign-in with a password", float64(after-before)/signIns)
	return errors.Join(err, failed)
}

const signIns = 300

func measureFile(ctx context.Context, sides []*side) error {
	before, err := bytesOf(sides)
	if err != nil {
		return err
	}
	refreshed, redeemed := make([]int, len(sides)), make([]int, len(sides))
	err = together(ctx, sides, "file", func(all []*instance) error {
		for _, n := range []int{1, many} {
			_, err := sides[0].underLoad(all, "tokens", n, func(i *instance) (time.Duration, func(c *conn, own int) (bool, error)) {
				return i.slice, func(c *conn, _ int) (bool, error) {
					_, err := i.token(c, "shop", "grant_type=client_credentials")
					return true, err
				}
			})
			if err != nil {
				return err
			}
		}
		return refreshAll(sides[0].bench, all, "refreshes", refreshed)
	})
	between, failed := bytesOf(sides)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	err = together(ctx, sides, "file", func(all []*instance) error { return redeemAll(ctx, sides[0].bench, all, redeemed) })
	after, failed := bytesOf(sides)
	for k, s := range sides {
		s.note("bytes per refresh", float64(between[k]-before[k])/float64(refreshed[k]))
		s.note("bytes per redeemed code", float64(after[k]-between[k])/float64(redeemed[k]))
	}
	return errors.Join(err, failed)
}

// bytesOf returns the bytes in use in the file of each side.
func bytesOf(sides []*side) (all []int, err error) {
	for _, s := range sides {
		n, failed := s.stores["file"].bytesInUse()
		all, err = append(all, n), errors.Join(err, failed)
	}
	return all, err
}

// together runs do while a server of each side runs.
func together(ctx context.Context, sides []*side, store string, do func(all []*instance) error) error {
	return sides[0].stores[store].serving(ctx, func(first *instance) error {
		return sides[1].stores[store].serving(ctx, func(second *instance) error { return do([]*instance{first, second}) })
	})
}

func refreshAll(b *bench, all []*instance, what string, refreshed []int) error {
	for _, n := range []int{1, many} {
		calls, err := b.underLoad(all, what, n, func(i *instance) (time.Duration, func(c *conn, own int) (bool, error)) {
			return i.slice, i.refresh
		})
		if err != nil {
			return err
		}
		for k := range calls {
			refreshed[k] += calls[k]
		}
	}
	return nil
}

func redeemAll(ctx context.Context, b *bench, all []*instance, redeemed []int) error {
	for _, n := range []int{1, many} {
		each := b.codes
		if n == 1 {
			each /= 10
		}
		codes := map[*instance][]code{}
		for _, i := range all {
			var err error
			if codes[i], err = i.getCodes(ctx, each*b.slices); err != nil {
				return err
			}
		}
		calls, err := b.underLoad(all, "codes", n, func(i *instance) (time.Duration, func(c *conn, own int) (bool, error)) {
			slice := codes[i][:each]
			codes[i] = codes[i][each:]
			var next atomic.Int64
			return time.Minute, func(c *conn, _ int) (bool, error) {
				k := int(next.Add(1)) - 1
				if k >= len(slice) {
					return false, nil
				}
				_, err := i.token(c, "web", redeemForm(slice[k]))
				return true, err
			}
		})
		if err != nil {
			return err
		}
		for k := range calls {
			redeemed[k] += calls[k]
		}
	}
	return nil
}

func prepareMongoDB(ctx context.Context, s *side) error {
	st, err := s.newDatabase(ctx)
	if err != nil {
		return err
	}
	s.stores["mongodb"] = st
	if err := st.register(ctx); err != nil {
		return err
	}
	return st.serving(ctx, func(i *instance) error { return i.signIn(many) })
}

func measureMongoDB(ctx context.Context, sides []*side) error {
	return together(ctx, sides, "mongodb", func(all []*instance) error {
		return refreshAll(sides[0].bench, all, "MongoDB: refreshes", make([]int, len(all)))
	})
}

// importStep bounds the input of one import.
const importStep = 50_000

func (st *store) fillTo(ctx context.Context, n int) error {
	for from := 0; from < n; from += importStep {
		if err := st.fill(ctx, from, min(from+importStep, n)); err != nil {
			return err
		}
	}
	return nil
}

func prepareStart(ctx context.Context, s *side) error {
	for text := range strings.SplitSeq(s.clients, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		s.stores["start "+text] = s.newFile("clients-" + text)
		if err := s.stores["start "+text].fillTo(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

func measureStart(ctx context.Context, s *side) error {
	for text := range strings.SplitSeq(s.clients, ",") {
		err := s.stores["start "+text].serving(ctx, func(i *instance) error {
			used, err := i.processor()
			s.note("start with "+text+" clients, s", i.took.Seconds())
			s.note("start with "+text+" clients, processor s", used.Seconds())
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func prepareFollow(ctx context.Context, s *side) (err error) {
	if s.stores["follow"], err = s.newDatabase(ctx); err != nil {
		return err
	}
	if err = s.stores["follow"].fillTo(ctx, s.followed); err != nil {
		return err
	}
	file := s.newFile("follow")
	s.stores["follow in a file"] = file
	if err = file.register(ctx); err != nil {
		return err
	}
	return file.fillTo(ctx, s.followedInFile)
}

func measureFollow(ctx context.Context, s *side) error {
	st := s.stores["follow"]
	err := st.follow(ctx, fmt.Sprintf("MongoDB, %d clients: processor time to follow one change, ms", s.followed), func(_ *instance, args ...string) error {
		_, err := st.command(ctx, "", args...)
		return err
	})
	if err != nil {
		return err
	}
	file := s.stores["follow in a file"]
	return file.follow(ctx, fmt.Sprintf("File, %d clients: processor time for one change, ms", s.followedInFile), func(i *instance, args ...string) error {
		return i.administer(ctx, args...)
	})
}

const changes = 100

// follow changes clients one by one. What an instance uses meanwhile, without what it uses at rest, is for the changes.
func (st *store) follow(ctx context.Context, what string, change func(i *instance, args ...string) error) error {
	return st.serving(ctx, func(i *instance) error {
		pause(ctx, 5*time.Second)
		spent := func(do func() error) (used, took float64, err error) {
			before, err := i.processor()
			began := time.Now()
			if err = errors.Join(err, do()); err != nil {
				return 0, 0, err
			}
			after, err := i.processor()
			return (after - before).Seconds(), time.Since(began).Seconds(), err
		}
		rest, restTook, err := spent(func() error { pause(ctx, 10*time.Second); return nil })
		if err != nil {
			return err
		}
		used, took, err := spent(func() error {
			for k := range changes {
				if err := change(i, "client", "update", fmt.Sprintf("client-%07d", k), "--name=changed at "+time.Now().String()); err != nil {
					return err
				}
				pause(ctx, 50*time.Millisecond)
			}
			pause(ctx, 2*time.Second)
			return nil
		})
		st.note(what, 1000*(used-rest/restTook*took)/changes)
		return err
	})
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func prepareIdle(ctx context.Context, s *side) (err error) {
	if s.stores["idle"], err = s.newDatabase(ctx); err != nil {
		return err
	}
	st := s.stores["idle"]
	if err := st.register(ctx); err != nil {
		return err
	}
	return st.serving(ctx, func(i *instance) error { // some builds ask for more until there is a policy
		return i.administer(ctx, "limits", "set", "shop", "--user=1000000/60s", "--yes")
	})
}

// measureIdle counts the commands of two instances that have nothing to do.
func measureIdle(ctx context.Context, s *side) error {
	through := *s.stores["idle"]
	commands, uri, err := countingProxy(ctx, through.uri)
	if err != nil {
		return err
	}
	through.uri = uri
	return through.serving(ctx, func(*instance) error {
		return through.serving(ctx, func(*instance) error {
			pause(ctx, 20*time.Second)
			before := commands.Load()
			pause(ctx, s.rest)
			s.note("MongoDB: idle commands per instance and minute", float64(commands.Load()-before)/2/s.rest.Minutes())
			return nil
		})
	})
}

// countingProxy relays to MongoDB until the process ends, and counts what is sent there.
func countingProxy(ctx context.Context, uri string) (commands *atomic.Int64, through string, err error) {
	l, err := wire.Listen(ctx, uri)
	if err != nil {
		return nil, "", err
	}
	commands = new(atomic.Int64)
	go l.Relay(ctx, func(wire.Message) { commands.Add(1) }, func(wire.Message) {})
	return commands, l.URI, nil
}
