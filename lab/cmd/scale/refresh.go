package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"          //nolint:depguard // counts the documents of a database
	"go.mongodb.org/mongo-driver/v2/mongo"         //nolint:depguard // the same
	"go.mongodb.org/mongo-driver/v2/mongo/options" //nolint:depguard // the same

	"oauth-server/lab/load"
	"oauth-server/lab/page"
	"oauth-server/lab/servers"
)

const (
	signIns  = 64 // sign-ins to refresh repeatedly
	atOnce   = 16 // refreshes that are under way while none is timed
	userName = "ada"
	password = "a quiet harbour at four in the morning"
	longest  = time.Hour // of a number of refreshes
)

func measureRefresh(ctx context.Context, w *world) error {
	for _, kind := range kinds() {
		if err := w.onStore(ctx, kind, "refresh/"+kind+"/", w.measureRefreshes); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) measureRefreshes(ctx context.Context, s *servers.Store, name string) error {
	refreshes := &servers.Refreshes{Client: "scale"}
	if err := errors.Join(
		s.CreateClient(ctx, refreshes.Client, "--grant=password", "--grant=refresh_token"),
		s.CreateUser(ctx, userName, password),
		s.Serving(ctx, serverConfig, func(i *servers.Server) error {
			return refreshes.SignIn(ctx, i, userName, password, signIns)
		})); err != nil {
		return err
	}
	bytesFirst, recordsFirst, err := stored(ctx, s)
	if err != nil {
		return err
	}
	made := 0
	for _, n := range w.sizes.refreshes {
		at := fmt.Sprintf("%s%d/", name, n)
		err := s.Serving(ctx, serverConfig, func(i *servers.Server) error {
			used, _, err := servers.Spent(func() error {
				_, err := refreshes.Run(ctx, i, atOnce, n-made, longest)
				return err
			}, i)
			w.figures[at+"processor"] = 1e6 * used / float64(n-made)
			return err
		})
		if err != nil {
			return err
		}
		bytes, records, err := stored(ctx, s)
		if err != nil {
			return err
		}
		w.figures[at+"bytes"] = float64(bytes-bytesFirst) / float64(n)
		w.figures[at+"records"] = float64(records-recordsFirst) / float64(n)
		err = s.Serving(ctx, serverConfig, func(i *servers.Server) error { return w.sample(ctx, i, refreshes, at) })
		if err != nil {
			return err
		}
		made = n + w.sizes.sample
	}
	return nil
}

// sample refreshes one at a time.
func (w *world) sample(ctx context.Context, i *servers.Server, refreshes *servers.Refreshes, name string) error {
	r, err := refreshes.Run(ctx, i, 1, w.sizes.sample, longest)
	if err != nil {
		return err
	}
	took := r.Between(0, longest).Took
	w.figures[name+"p50"] = float64(load.Percentile(took, 50).Microseconds())
	w.figures[name+"p99"] = float64(load.Percentile(took, 99).Microseconds())
	return nil
}

// stored returns what the store holds: of a file the pages that are in use, with the index; on MongoDB the
// documents of grants, without indexes. No server may have a file open.
func stored(ctx context.Context, s *servers.Store) (bytes, records int, err error) {
	if s.File != "" {
		return s.InUse()
	}
	err = s.On(ctx, func(db *mongo.Database) error {
		cursor, err := db.Collection("grants").Find(ctx, bson.D{}, options.Find().SetBatchSize(10_000))
		if err != nil {
			return err
		}
		for cursor.Next(ctx) {
			bytes, records = bytes+len(cursor.Current), records+1
		}
		return errors.Join(cursor.Err(), cursor.Close(ctx))
	})
	return bytes, records, err
}

func refreshTables(w *world) string {
	columns := []column{
		{"bytes per refresh", "bytes", unit("B")},
		{"records per refresh", "records", page.Number},
		{"p50", "p50", unit("µs")},
		{"p99", "p99", unit("µs")},
		{"server processor time per refresh", "processor", unit("µs")},
	}
	var b strings.Builder
	for _, kind := range kinds() {
		title := strings.Replace(titles[kind], ", three instances", "", 1)
		b.WriteString("\n" + title + "\n\n" + w.figures.table("after refreshes", columns, rowsOf(w.sizes.refreshes, "refresh/"+kind+"/%d/")))
	}
	return b.String()
}
