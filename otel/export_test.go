package otel

// MetricName is what tests of the metrics compare with.
var MetricName = metricName
