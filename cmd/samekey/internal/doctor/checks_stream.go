package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/state"
)

func streamChecks() []Check {
	mappings := []Source{DescribeTable, Mappings}
	return []Check{
		{
			ID: "stream-view", Severity: Error, Needs: []Source{DescribeTable}, find: streamView,
			Looks:  "the table's stream is on, with new and old images",
			Causes: "the worker can't tell which jobs are new and which records TTL removed, so jobs wait for the hourly sweep, or are lost",
			Mend:   "StreamSpecification: {StreamViewType: NEW_AND_OLD_IMAGES}",
		},
		{
			ID: "stream-reader", Severity: Error, Needs: mappings, find: streamReader,
			Looks:  "a function reads the stream, and its mapping is enabled",
			Causes: "jobs and abandoned requests wait for the sweep",
			Mend:   "deploy WorkerStream of samekey.yaml; if the mapping is disabled, run aws lambda update-event-source-mapping --enabled --uuid UUID",
		},
		{
			ID: "stream-readers", Severity: Warning, Needs: mappings, find: streamReaders,
			Looks:  "at most two functions read the stream",
			Causes: "DynamoDB throttles the readers of a shard, and all readers get records late",
			Mend:   "use one worker instead of drain and completer (docs/operate/background.md), or give the other readers a Kinesis stream",
		},
		{
			ID: "stream-filters", Severity: Error, Needs: mappings, find: streamFilters,
			Looks:  "the filters of the stream's mappings pass every record that the worker needs",
			Causes: "the worker doesn't see some records. The jobs and abandoned requests of these records wait for the sweep, and nobody is told when TTL removes an unfinished record",
			Mend:   "take WorkerStream's FilterCriteria from samekey.yaml",
		},
		{
			ID: "mapping-result", Severity: Error, Needs: []Source{Mappings}, find: mappingResult,
			Looks:  "the most recent batch of each mapping had no problem",
			Causes: "stream records or messages are delayed or given up",
			Mend:   "correct the function or its role; then the mapping continues by itself",
		},
		{
			ID: "stream-retries", Severity: Error, Needs: mappings, find: streamRetries,
			Looks:  "the stream's mappings retry at least 5 times, and not for ever",
			Causes: "without a limit, a bad batch blocks its shard for a day. With too few tries, Lambda gives up a batch before the worker parks the bad job",
			Mend:   "MaximumRetryAttempts: 10, MaximumRecordAgeInSeconds: 86400",
		},
		{
			ID: "stream-bisect", Severity: Warning, Needs: mappings, find: streamBisect,
			Looks:  "the stream's mappings split a batch that fails",
			Causes: "when Lambda gives up a bad record, it gives up the other records of the batch too",
			Mend:   "BisectBatchOnFunctionError: true",
		},
		{
			ID: "stream-on-failure", Severity: Warning, Needs: mappings, find: streamOnFailure,
			Looks:  "the stream's mappings have an on-failure destination",
			Causes: "batches that Lambda gives up leave no trace: only the sweep finds the work in them",
			Mend:   "DestinationConfig: {OnFailure: {Destination: !GetAtt FailedBucket.Arn}}",
		},
		{
			ID: "stream-start", Severity: Warning, Needs: mappings, find: streamStart,
			Looks:  "the stream's mappings begin at the oldest record",
			Causes: "LATEST misses records that are written while the mapping is created or changed",
			Mend:   "StartingPosition: TRIM_HORIZON (create the mapping anew)",
		},
		{
			ID: "report-failures", Severity: Error, Needs: []Source{Mappings}, find: reportFailures,
			Looks:  "the mappings of the stream and of queues have ReportBatchItemFailures",
			Causes: "Lambda counts a batch with failures as done. Messages whose handler failed are then deleted, and the jobs of a failed stream record wait for the sweep",
			Mend:   "FunctionResponseTypes: [ReportBatchItemFailures]",
		},
	}
}

func (r reader) wrong(format string, args ...any) wrong {
	arn := aws.ToString(r.mapping.EventSourceArn)
	source := "queue " + arn[strings.LastIndexByte(arn, ':')+1:]
	if strings.Contains(arn, ":dynamodb:") {
		source = "stream"
	}
	return wrong{where: fmt.Sprintf("mapping of %s to %s", source, r.fn.Name), what: fmt.Sprintf(format, args...)}
}

func streamView(f *Facts) ([]wrong, string) {
	s := f.Table.StreamSpecification
	switch {
	case s == nil || !aws.ToBool(s.StreamEnabled):
		return found(f.atTable("it has no stream"))
	case s.StreamViewType != types.StreamViewTypeNewAndOldImages:
		return found(f.atTable("its stream shows %s", s.StreamViewType))
	}
	return found()
}

const noStream = "the table has no stream"

func enabled(m lambdatypes.EventSourceMappingConfiguration) bool {
	return !strings.HasPrefix(aws.ToString(m.State), "Disabl") // active states: Enabled, Enabling, Creating, Updating
}

func streamReader(f *Facts) ([]wrong, string) {
	if f.streamARN() == "" {
		return nil, noStream
	}
	readers := f.readers()
	if len(readers) == 0 {
		return found(f.atTable("no function reads its stream"))
	}
	var all []wrong
	for _, r := range readers {
		if !enabled(r.mapping) {
			all = append(all, r.wrong("it is %s (UUID %s)", aws.ToString(r.mapping.State), aws.ToString(r.mapping.UUID)))
		}
	}
	return all, ""
}

func streamReaders(f *Facts) ([]wrong, string) {
	readers := f.enabledReaders()
	if len(readers) <= 2 {
		return f.eachReader(func(reader) []wrong { return nil })
	}
	return found(f.atTable("%d mappings read its stream, for the functions %s", len(readers), namesOf(readers)))
}

func (f *Facts) enabledReaders() []reader {
	return slices.DeleteFunc(f.readers(), func(r reader) bool { return !enabled(r.mapping) })
}

func namesOf(readers []reader) string {
	names := make([]string, 0, len(readers))
	for _, r := range readers {
		names = append(names, r.fn.Name)
	}
	return strings.Join(names, ", ")
}

// eachReader calls the function look with each mapping of the stream, and gathers the findings.
func (f *Facts) eachReader(look func(reader) []wrong) (all []wrong, why string) {
	readers := f.readers()
	if len(readers) == 0 {
		return nil, "no function reads the stream"
	}
	for _, r := range readers {
		all = append(all, look(r)...)
	}
	return all, ""
}

// probes are stream records that the worker needs. The probes have the form to which
// Lambda applies filters. NS stands for the namespace.
var probes = []struct{ what, record string }{
	{"an open record", `{"eventName":"INSERT","dynamodb":{"NewImage":{"pk":{"S":"v1#NS#x"},"st":{"S":"open"}}}}`},
	{"the renewal of an open record", `{"eventName":"MODIFY","dynamodb":{"NewImage":{"pk":{"S":"v1#NS#x"},"st":{"S":"open"}},"OldImage":{"pk":{"S":"v1#NS#x"},"st":{"S":"open"}}}}`},
	{"a finished record", `{"eventName":"MODIFY","dynamodb":{"NewImage":{"pk":{"S":"v1#NS#x"},"st":{"S":"done"},"keep":{"S":"jobs"}},"OldImage":{"pk":{"S":"v1#NS#x"},"st":{"S":"open"}}}}`},
	{"a stuck record", `{"eventName":"MODIFY","dynamodb":{"NewImage":{"pk":{"S":"v1#NS#x"},"st":{"S":"stuck"},"keep":{"S":"open"}},"OldImage":{"pk":{"S":"v1#NS#x"},"st":{"S":"open"}}}}`},
	{"the removal of an open record", `{"eventName":"REMOVE","userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},"dynamodb":{"Keys":{"pk":{"S":"v1#NS#x"}},"OldImage":{"pk":{"S":"v1#NS#x"},"st":{"S":"open"}}}}`},
	{"the removal of a stuck record", `{"eventName":"REMOVE","userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},"dynamodb":{"Keys":{"pk":{"S":"v1#NS#x"}},"OldImage":{"pk":{"S":"v1#NS#x"},"st":{"S":"stuck"},"keep":{"S":"open"}}}}`},
	{"the removal of a finished record with jobs", `{"eventName":"REMOVE","userIdentity":{"type":"Service","principalId":"dynamodb.amazonaws.com"},"dynamodb":{"Keys":{"pk":{"S":"v1#NS#x"}},"OldImage":{"pk":{"S":"v1#NS#x"},"st":{"S":"done"},"keep":{"S":"jobs"}}}}`},
}

// streamFilters finds the probes that no enabled mapping lets through. A probe has to
// pass only one mapping, because drain and completer can be separate functions, and the
// mapping of each may pass only the records that its function needs.
func streamFilters(f *Facts) ([]wrong, string) {
	readers := f.enabledReaders()
	if len(readers) == 0 {
		return nil, "no function reads the stream"
	}
	var all []wrong
	var left []string
	for _, r := range readers {
		if e := r.mapping.FilterCriteriaError; e != nil {
			all = append(all, r.wrong("its filters can't be read: %s: %s", aws.ToString(e.ErrorCode), aws.ToString(e.Message)))
		}
	}
	if len(all) > 0 {
		return all, ""
	}
	namespaces := []string{""}
	for _, r := range f.Sample {
		if ns := state.Namespace(r.PK); !slices.Contains(namespaces, ns) {
			namespaces = append(namespaces, ns)
		}
	}
	if w := f.worker(); w != nil && w.Env["SAMEKEY_NAMESPACES"] != "" {
		namespaces = list(w.Env["SAMEKEY_NAMESPACES"])
	}
	for _, p := range probes {
		for _, ns := range namespaces {
			passes := false
			for _, r := range readers {
				ok, err := eventsource.Match(patterns(r.mapping), []byte(strings.ReplaceAll(p.record, "v1#NS#", "v1#"+ns+"#")))
				if err != nil {
					return nil, fmt.Sprintf("can't read the filters of %s: %v", r.fn.Name, err)
				}
				passes = passes || ok
			}
			if !passes && !slices.Contains(left, p.what) {
				left = append(left, p.what)
			}
		}
	}
	if len(left) > 0 {
		all = append(all, f.atTable("the filters of its stream's mappings, for the functions %s, leave out %s", namesOf(readers), strings.Join(left, ", ")))
	}
	return all, ""
}

func mappingResult(f *Facts) ([]wrong, string) {
	var all []wrong
	for _, r := range append(f.readers(), f.consumers()...) {
		if last := aws.ToString(r.mapping.LastProcessingResult); enabled(r.mapping) && strings.HasPrefix(last, "PROBLEM") {
			all = append(all, r.wrong("%s", last))
		}
	}
	return all, ""
}

func patterns(m lambdatypes.EventSourceMappingConfiguration) (all []string) {
	if m.FilterCriteria == nil {
		return nil
	}
	for _, p := range m.FilterCriteria.Filters {
		all = append(all, aws.ToString(p.Pattern))
	}
	return all
}

func streamRetries(f *Facts) ([]wrong, string) {
	return f.eachReader(func(r reader) []wrong {
		n := int32(-1)
		if r.mapping.MaximumRetryAttempts != nil {
			n = *r.mapping.MaximumRetryAttempts
		}
		switch {
		case n < 0 && givesUpEarly(r.mapping): // the records' age ends the retries
			return nil
		case n < 0:
			return []wrong{r.wrong("it has no limit of retries")}
		case n < 5:
			return []wrong{r.wrong("it gives up a batch after %d retries", n)}
		}
		return nil
	})
}

func streamBisect(f *Facts) ([]wrong, string) {
	return f.eachReader(func(r reader) []wrong {
		if aws.ToBool(r.mapping.BisectBatchOnFunctionError) {
			return nil
		}
		return []wrong{r.wrong("BisectBatchOnFunctionError is off")}
	})
}

func streamOnFailure(f *Facts) ([]wrong, string) {
	return f.eachReader(func(r reader) []wrong {
		if d := r.mapping.DestinationConfig; d != nil && d.OnFailure != nil && aws.ToString(d.OnFailure.Destination) != "" {
			return nil
		}
		return []wrong{r.wrong("it has no on-failure destination")}
	})
}

func streamStart(f *Facts) ([]wrong, string) {
	return f.eachReader(func(r reader) []wrong {
		if r.mapping.StartingPosition != lambdatypes.EventSourcePositionLatest {
			return nil
		}
		return []wrong{r.wrong("StartingPosition is LATEST")}
	})
}

func reportFailures(f *Facts) ([]wrong, string) {
	both := append(f.readers(), f.consumers()...)
	if len(both) == 0 {
		return nil, "no function reads the stream or a queue"
	}
	var all []wrong
	for _, r := range both {
		reports := false
		for _, t := range r.mapping.FunctionResponseTypes {
			reports = reports || t == lambdatypes.FunctionResponseTypeReportBatchItemFailures
		}
		if !reports {
			all = append(all, r.wrong("FunctionResponseTypes has no ReportBatchItemFailures"))
		}
	}
	return all, ""
}
