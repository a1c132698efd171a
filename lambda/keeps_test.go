package lambda_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// An engine that forgets a key while its source may still bring the record would
// let it run a second time: the log says so, once, as the function starts.
func TestASourceThatOutlastsTheRetention(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	wrap := func(source string) func(*idem.Engine, time.Duration) { return sourceOf(t, source).wrap }
	for name, tc := range map[string]struct {
		wrap    func(*idem.Engine, time.Duration)
		keeps   time.Duration // 0: as the package has it
		options func(*idem.Options)
		warns   bool
	}{
		"SQS, a day":                          {wrap("SQS"), 0, func(*idem.Options) {}, true},
		"SQS, less than 14 days":              {wrap("SQS"), 0, func(o *idem.Options) { o.Retention = 14*day - time.Second }, true},
		"SQS, 14 days":                        {wrap("SQS"), 0, func(o *idem.Options) { o.Retention = 14 * day }, false},
		"SQS, 14 days with the tombstone":     {wrap("SQS"), 0, func(o *idem.Options) { o.Tombstone = 13 * day }, false},
		"SQS, disabled":                       {wrap("SQS"), 0, func(o *idem.Options) { o.Mode = idem.ModeOff }, false},
		"a queue that keeps for an hour":      {wrap("SQS"), time.Hour, func(*idem.Options) {}, false},
		"a queue with a dead-letter queue":    {wrap("SQS"), 28 * day, func(o *idem.Options) { o.Retention = 14 * day }, true},
		"SNS, 23 days":                        {wrap("SNS"), 0, func(o *idem.Options) { o.Retention = 23 * day }, true},
		"SNS, a month":                        {wrap("SNS"), 0, func(o *idem.Options) { o.Retention = 30 * 24 * time.Hour }, false},
		"EventBridge, a day":                  {wrap("EventBridge"), 0, func(*idem.Options) {}, true},
		"EventBridge, a weekend":              {wrap("EventBridge"), 0, func(o *idem.Options) { o.Retention = 72 * time.Hour }, false},
		"S3, an hour":                         {wrap("S3"), 0, func(o *idem.Options) { o.Retention = time.Hour }, true},
		"S3, a day":                           {wrap("S3"), 0, func(*idem.Options) {}, false},
		"Kinesis, a month":                    {wrap("Kinesis"), 0, func(o *idem.Options) { o.Retention = 30 * 24 * time.Hour }, true},
		"Kinesis, a stream that keeps a day":  {wrap("Kinesis"), day, func(*idem.Options) {}, false},
		"Kafka, a day":                        {wrap("Kafka"), 0, func(*idem.Options) {}, true},
		"Kafka, a week":                       {wrap("Kafka"), 0, func(o *idem.Options) { o.Retention = 7 * day }, false},
		"Kafka, a topic that keeps a day":     {wrap("Kafka"), day, func(*idem.Options) {}, false},
		"a table's stream, a day":             {wrap("DynamoDBStream"), 0, func(*idem.Options) {}, false},
		"a table's stream, less than its day": {wrap("DynamoDBStream"), 0, func(o *idem.Options) { o.Retention = 23 * time.Hour }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			tc.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
				o.Logger = slog.New(slog.NewTextHandler(&log, nil))
				tc.options(o)
			}), tc.keeps)
			if n := strings.Count(log.String(), "carried out a second time"); n > 1 || (n == 1) != tc.warns {
				t.Errorf("the log says, want a warning: %v:\n%s", tc.warns, log.String())
			}
		})
	}
}
