package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// prometheus queries a running Prometheus.
type prometheus struct {
	url string
	v1.API
}

func newPrometheus(url string) (*prometheus, error) {
	client, err := api.NewClient(api.Config{Address: url})
	return &prometheus{url, v1.NewAPI(client)}, err
}

// span returns the values of an expression between two times.
func (p *prometheus) span(ctx context.Context, expr string, from, to time.Time, step time.Duration) (model.Matrix, error) {
	found, _, _, err := p.QueryRange(ctx, expr, v1.Range{Start: from, End: to, Step: step})
	if err != nil {
		return nil, fmt.Errorf("query prometheus: %w in %s", err, expr)
	}
	return found.(model.Matrix), nil //nolint:forcetypeassert // of a range it is always one
}
