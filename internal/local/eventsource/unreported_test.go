package eventsource_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/internal/local/eventsource"
)

// Without ReportBatchItemFailures a report is lost, and what it names with it.
// Lambda says nothing; here somebody is told.
func TestReportsThatNobodyAskedForAreTold(t *testing.T) {
	for name, start := range map[string]func(t *testing.T, report bool, log *slog.Logger){
		"stream": func(t *testing.T, report bool, log *slog.Logger) {
			t.Helper()
			api := newFakeStream("a")
			api.put("a", "1", "2")
			startStream(t, api, &function{answer: reporting("2")}, eventsource.Stream{ReportBatchItemFailures: report, Logger: log})
		},
		"queue": func(t *testing.T, report bool, log *slog.Logger) {
			t.Helper()
			api := newFakeQueue()
			api.send("1", "2")
			startQueue(t, api, &function{answer: reportingIDs("id-2")}, eventsource.Queue{ReportBatchItemFailures: report, Logger: log})
		},
	} {
		for _, report := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				start(t, report, slog.New(slog.NewTextHandler(&log, nil)))
				after(time.Second)
				told := strings.Count(log.String(), "the mapping has no ReportBatchItemFailures")
				if want := map[bool]int{false: 1, true: 0}[report]; told != want {
					t.Errorf("%s, asked for %v: told %d times, want %d:\n%s", name, report, told, want, &log)
				}
			})
		}
	}
}
