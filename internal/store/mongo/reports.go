package mongo

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
)

type reportDoc struct {
	Instance string    `bson:"_id"`
	At       time.Time `bson:"at"`
	Expire   time.Time `bson:"expire"`
	Body     string    `bson:"body"` // JSON
}

// PutReport implements [clientcfg.Reports].
func (s *Store) PutReport(ctx context.Context, r clientcfg.Report) error {
	doc := reportDoc{Instance: r.Instance, At: r.At, Expire: r.Expires, Body: string(r.Body)}
	return s.do(ctx, "put a report", func(ctx context.Context) error {
		for {
			_, err := s.reports.ReplaceOne(ctx, byID(r.Instance), doc, options.Replace().SetUpsert(true))
			if !mongo.IsDuplicateKeyError(err) { // two at once: the second finds the first's
				return err
			}
		}
	})
}

// Reports implements [clientcfg.Reports].
func (s *Store) Reports(ctx context.Context, now time.Time) (list []clientcfg.Report, err error) {
	alive := bson.D{{Key: "expire", Value: bson.D{{Key: "$gte", Value: now}}}}
	err = s.do(ctx, "reports", func(ctx context.Context) error {
		docs, err := findAll[reportDoc](ctx, s.reports, alive, options.Find().SetSort(byID(1)))
		for _, d := range docs {
			list = append(list, clientcfg.Report{Instance: d.Instance, At: d.At, Expires: d.Expire, Body: []byte(d.Body)})
		}
		return err
	})
	return list, err
}

// DeleteReport implements [clientcfg.Reports].
func (s *Store) DeleteReport(ctx context.Context, instance string) error {
	return s.do(ctx, "delete a report", func(ctx context.Context) error {
		_, err := s.reports.DeleteOne(ctx, byID(instance))
		return err
	})
}
