package otel

// What tests of the page and of the metrics compare with.
var (
	Attributes = meanings
	MetricName = metricName
)
