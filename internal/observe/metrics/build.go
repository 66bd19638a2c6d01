package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The classic buckets. Native histograms need none.
var (
	latencyBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	delayBuckets   = []float64{.01, .025, .05, .1, .25, .5, 1, 2, 5, 10}
	callBuckets    = []float64{0, 1, 2, 3, 4, 6, 8, 12}
	waitBuckets    = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}
	sizeBuckets    = []float64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000}
)

// builder creates and registers collectors, and keeps the first error.
type builder struct {
	reg  prometheus.Registerer
	made map[string]bool // by name
	err  error
}

func (b *builder) add(i Info, c prometheus.Collector) {
	b.made[i.Name] = true
	b.register(c)
}

func (b *builder) register(c prometheus.Collector) {
	if b.err == nil {
		b.err = b.reg.Register(c)
	}
}

func (b *builder) counterVec(i Info) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: i.Name, Help: i.Help}, i.Labels)
	b.add(i, c)
	return c
}

func (b *builder) gauge(i Info) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: i.Name, Help: i.Help})
	b.add(i, g)
	return g
}

func (b *builder) histogramVec(i Info, buckets []float64, native bool) *prometheus.HistogramVec {
	o := prometheus.HistogramOpts{Name: i.Name, Help: i.Help, Buckets: buckets}
	if native {
		// Buckets are at most 10 % wide, and their number is bounded.
		o.NativeHistogramBucketFactor = 1.1
		o.NativeHistogramMaxBucketNumber = 160
		o.NativeHistogramMinResetDuration = time.Hour
	}
	h := prometheus.NewHistogramVec(o, i.Labels)
	b.add(i, h)
	return h
}
