package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"oauth-server/lab/chart"
)

// prometheus queries a running Prometheus.
type prometheus struct {
	url string
}

// series is the result of a query for one set of labels.
type series struct {
	labels map[string]string
	points []chart.Point
}

func (p *prometheus) api() (v1.API, error) {
	client, err := api.NewClient(api.Config{Address: p.url})
	return v1.NewAPI(client), err
}

// now returns the current values of an expression.
func (p *prometheus) now(ctx context.Context, expr string) ([]series, error) {
	a, err := p.api()
	if err != nil {
		return nil, err
	}
	found, _, _, err := a.Query(ctx, expr, time.Time{})
	return seriesOf(found, err, expr)
}

// span returns the values of an expression between two times.
func (p *prometheus) span(ctx context.Context, expr string, from, to time.Time, step time.Duration) ([]series, error) {
	a, err := p.api()
	if err != nil {
		return nil, err
	}
	found, _, _, err := a.QueryRange(ctx, expr, v1.Range{Start: from, End: to, Step: step})
	return seriesOf(found, err, expr)
}

func seriesOf(found model.Value, err error, expr string) (all []series, _ error) {
	if err != nil {
		return nil, fmt.Errorf("query prometheus: %w in %s", err, expr)
	}
	switch found := found.(type) {
	case model.Vector:
		for _, s := range found {
			all = append(all, series{labelsOf(s.Metric), []chart.Point{pointOf(s.Timestamp, s.Value)}})
		}
	case model.Matrix:
		for _, s := range found {
			one := series{labels: labelsOf(s.Metric)}
			for _, v := range s.Values {
				one.points = append(one.points, pointOf(v.Timestamp, v.Value))
			}
			all = append(all, one)
		}
	default:
		return nil, fmt.Errorf("query prometheus: the result of %s is a %s", expr, found.Type())
	}
	return all, nil
}

func labelsOf(m model.Metric) map[string]string {
	labels := map[string]string{}
	for name, value := range m {
		labels[string(name)] = string(value)
	}
	return labels
}

func pointOf(at model.Time, v model.SampleValue) chart.Point {
	return chart.Point{X: chart.Seconds(at.Time()), Y: float64(v)}
}
