package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

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

// maxReply is the number of bytes of an answer that are read.
const maxReply = 64 << 20

// reply is what is used of an answer of Prometheus' HTTP API.
type reply struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Data   struct {
		Result []struct {
			Metric map[string]string `json:"metric"`
			Value  sample            `json:"value"`
			Values []sample          `json:"values"`
		} `json:"result"`
	} `json:"data"`
}

// sample is a point in JSON: an array of the time in seconds and the value as text.
type sample struct{ chart.Point }

// UnmarshalJSON implements json.Unmarshaler.
func (s *sample) UnmarshalJSON(raw []byte) error {
	var at float64
	var text string
	if err := json.Unmarshal(raw, &[]any{&at, &text}); err != nil {
		return err
	}
	value, err := strconv.ParseFloat(text, 64)
	s.Point = chart.Point{X: at, Y: value}
	return err
}

// now returns the current values of an expression.
func (p *prometheus) now(ctx context.Context, expr string) ([]series, error) {
	return p.get(ctx, "/api/v1/query", url.Values{"query": {expr}})
}

// span returns the values of an expression between two times.
func (p *prometheus) span(ctx context.Context, expr string, from, to time.Time, step time.Duration) ([]series, error) {
	return p.get(ctx, "/api/v1/query_range", url.Values{
		"query": {expr}, "step": {fmt.Sprint(step.Seconds())},
		"start": {from.Format(time.RFC3339Nano)}, "end": {to.Format(time.RFC3339Nano)},
	})
}

func (p *prometheus) get(ctx context.Context, path string, form url.Values) (_ []series, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?"+form.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	var r reply
	if err := json.NewDecoder(io.LimitReader(res.Body, maxReply)).Decode(&r); err != nil {
		return nil, fmt.Errorf("read answer of prometheus: %s: %w", res.Status, err)
	}
	if r.Status != "success" {
		return nil, fmt.Errorf("query prometheus: %s in %s", r.Error, form.Get("query"))
	}
	all := make([]series, 0, len(r.Data.Result))
	for _, found := range r.Data.Result {
		s := series{labels: found.Metric}
		for _, v := range append(found.Values, found.Value) {
			if v.X != 0 {
				s.points = append(s.points, v.Point)
			}
		}
		all = append(all, s)
	}
	return all, nil
}
