package doctor

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// windowChecks find what is gone before it is needed: answers, keys at the provider,
// and records of the stream.
func windowChecks() []Check {
	return []Check{
		{
			ID: "retention-clients", Severity: Error, Needs: []Source{ScanTable}, find: retentionClients,
			Looks:  "the answers in the sample are kept longer than clients retry (--client-retries)",
			Causes: "a retry after the answer has expired runs the handler again, so a customer may be charged twice",
			Mend:   "set o.Retention above the time for which clients retry, for example to 72 * time.Hour",
		},
		{
			ID: "retention-queue", Severity: Error, Needs: []Source{ScanTable, Functions, Mappings, Queues}, find: retentionQueue,
			Looks:  "a function remembers a message until neither its queue nor the dead-letter queue can deliver the message again",
			Causes: "a message that is delivered late, or redriven from the dead-letter queue, is processed twice",
			Mend:   "in this function, set o.Retention to at least the MessageRetentionPeriod of the queue plus that of the dead-letter queue, for example to 30 * 24 * time.Hour",
		},
		{
			ID: "provider-keys", Severity: Warning, Needs: []Source{Functions}, find: providerKeys,
			Looks:  "the completer takes up abandoned requests more than an hour before the provider forgets a key (--provider-remembers)",
			Causes: "each operation with a call in doubt waits for people, since the call can't be repeated safely",
			Mend:   "shorten the parameter Grace. If the provider remembers keys for longer than 24 hours, tell this time to the phase (idem.Remembers) and to samekey doctor (--provider-remembers)",
		},
		{
			ID: "stream-age", Severity: Warning, Needs: []Source{DescribeTable, Mappings}, find: streamAge,
			Looks:  "the stream's mappings don't give up a record before it is a day old",
			Causes: "if an outage lasts longer than this age, Lambda gives up batches. The work in these batches waits for the sweep. But the sweep can't find a record that TTL has removed",
			Mend:   "MaximumRecordAgeInSeconds: 86400",
		},
	}
}

// hidden is the longest time for which SQS can delay a new ticket.
const hidden = 15 * time.Minute

// Facts.retentions estimates the shortest time for which each function keeps an answer
// of the sample. The time counts from the record's Run until the answer is no longer
// replayed. For an operation without jobs, Run is the start of the last attempt, so the
// estimate is too long by the attempt's duration.
func (f *Facts) retentions() map[string]time.Duration {
	all := make(map[string]time.Duration)
	for _, r := range f.Sample {
		end := state.Lifetime(r)
		if r.State != store.Done || end.IsZero() || r.Run.IsZero() || mistaken(r, f.Now) {
			continue
		}
		kept := end.Sub(r.Run).Round(time.Minute)
		if known, ok := all[r.Handler.Function]; !ok || kept < known {
			all[r.Handler.Function] = kept
		}
	}
	return all
}

const noFinished = "the sample has no finished record that shows the retention"

func retentionClients(f *Facts) ([]wrong, string) {
	if f.Options.ClientRetries <= 0 {
		return nil, "give --client-retries, the time for which clients retry"
	}
	kept := f.retentions()
	if len(kept) == 0 {
		return nil, noFinished
	}
	var all []wrong
	for _, fn := range slices.Sorted(maps.Keys(kept)) {
		if kept[fn] < f.Options.ClientRetries && !f.consumes(fn) {
			all = append(all, wrong{where: "function " + fn, what: fmt.Sprintf("its answers are kept for %s, but clients retry for %s", span(kept[fn]), span(f.Options.ClientRetries))})
		}
	}
	return all, ""
}

// Facts.consumes tells whether a function's requests come from a queue.
func (f *Facts) consumes(fn string) bool {
	return slices.ContainsFunc(f.consumers(), func(r reader) bool { return r.fn.Name == fn })
}

func retentionQueue(f *Facts) ([]wrong, string) {
	kept := f.retentions()
	var all []wrong
	measured := false
	for _, r := range f.consumers() {
		q, has := f.Queues[aws.ToString(r.mapping.EventSourceArn)], kept[r.fn.Name]
		if q == nil || q.Gone || r.fn == f.worker() || has == 0 {
			continue
		}
		measured = true
		need := q.kept()
		if dead := f.Queues[q.deadLetters()]; dead != nil {
			need += dead.kept()
		}
		if has < need {
			w := r.fn.wrong("it remembers a message for %s, but %s may deliver the message again for %s", span(has), q.wrong("").where, span(need))
			if has >= q.kept() {
				w.severity = Warning
				w.causes = "a message that is redriven late from the dead-letter queue is processed twice"
			}
			all = append(all, w)
		}
	}
	if !measured {
		return nil, "the sample has no finished record of a function that reads a queue"
	}
	return all, ""
}

// Function.setting reads a duration from the function's environment.
func (fn *Function) setting(name string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(fn.Env[name]); err == nil {
		return d
	}
	return otherwise
}

func providerKeys(f *Facts) ([]wrong, string) {
	w := f.worker()
	if w == nil {
		return nil, noWorker
	}
	longest := time.Duration(0)
	for _, fn := range f.completing() {
		longest = max(longest, fn.Timeout)
	}
	first := w.setting("SAMEKEY_GRACE", state.DefaultGrace) + longest + hidden
	if first < f.Options.ProviderRemembers-time.Hour { // idem.Foreign reserves this hour for the call
		return found()
	}
	return found(w.wrong("the completer takes up an abandoned request %s after its claim. Since the provider forgets a key after %s, less than an hour is left for the call", span(first), span(f.Options.ProviderRemembers)))
}

func streamAge(f *Facts) ([]wrong, string) {
	return f.eachReader(func(r reader) []wrong {
		if !givesUpEarly(r.mapping) {
			return nil
		}
		return []wrong{r.wrong("the mapping gives up records that are %d s old", *r.mapping.MaximumRecordAgeInSeconds)}
	})
}

// givesUpEarly reports whether a mapping gives up records before they are a day old.
func givesUpEarly(m lambdatypes.EventSourceMappingConfiguration) bool {
	age := aws.ToInt32(m.MaximumRecordAgeInSeconds)
	return age > 0 && age < 24*3600
}
