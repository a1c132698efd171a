package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/samekey/samekey/idem/store"
)

func functionChecks() []Check {
	functions := []Source{Functions}
	return []Check{
		{
			ID: "env-table", Severity: Error, Needs: []Source{Functions, DescribeTable}, find: envTable,
			Looks:  "IDEM_TABLE names the same table in all functions",
			Causes: "the worker doesn't deliver the jobs in the function's table, and a retry that reaches another function runs the request again",
			Mend:   "IDEM_TABLE: !GetAtt Samekey.Outputs.TableName in each function's Environment",
		},
		{
			ID: "env-app", Severity: Warning, Needs: functions, find: envApp,
			Looks:  "SAMEKEY_APP has the same value in all functions that set it",
			Causes: "no alarm rings for this function, because its metrics and the alarms have different values of App",
			Mend:   "in all functions, set SAMEKEY_APP to the value of the parameter App",
		},
		{
			ID: "log-level", Severity: Error, Needs: functions, find: logLevel,
			Looks:  "each function's ApplicationLogLevel passes WARN, the level of metrics",
			Causes: "Lambda drops the function's metrics, so no alarm rings for this function",
			Mend:   "ApplicationLogLevel: WARN, INFO, DEBUG or TRACE",
		},
		{
			ID: "completes", Severity: Error, Needs: functions, find: completes,
			Looks:  "the functions in the worker's SAMEKEY_FUNCTIONS exist",
			Causes: "the worker can't complete abandoned requests of the missing function (outcome not_mine), so the operations stay open",
			Mend:   "correct the parameter Functions (docs/operate/background.md)",
		},
		{
			ID: "completes-all", Severity: Error, Needs: []Source{Functions, ScanTable}, find: completesAll,
			Looks:  "SAMEKEY_FUNCTIONS names each function that has an open operation with a stored request in the sample",
			Causes: "the worker can't complete abandoned requests of the function, so their operations stay open until the client retries",
			Mend:   "add the function's ARN to the parameter Functions",
		},
		{
			ID: "worker-timeout", Severity: Error, Needs: functions, find: workerTimeout,
			Looks:  "the worker's Timeout is above the Timeout of each function in SAMEKEY_FUNCTIONS",
			Causes: "if the function runs longer than the worker's Timeout, Lambda ends the worker first. The worker tries again until the ticket has no tries left",
			Mend:   "set the worker's Timeout (120 in samekey.yaml) above the functions' Timeouts",
		},
		{
			ID: "gateway-timeout", Severity: Warning, Needs: []Source{Functions, Policies, Gateways}, find: gatewayTimeout,
			Looks:  "a function behind an API ends before the API gives up",
			Causes: "the client gets 503 or 504 while the request runs on, and retries get 409 until the function ends",
			Mend:   "set the function's Timeout below the API's integration timeout. The integration timeout is at most 30 s for an HTTP API, and 29 s for a REST API with the default quota",
		},
		{
			ID: "gateway-bytes", Severity: Note, Needs: []Source{Functions, Policies, Gateways}, find: gatewayBytes,
			Looks:  "a REST API in front of a function has binary media types",
			Causes: "the function gets bodies in which the API has replaced all bytes that are not UTF-8. JSON is not affected",
			Mend:   "set the API's BinaryMediaTypes (docs/use/http.md), unless clients send only text",
		},
		{
			ID: "lease", Severity: Warning, Needs: functions, find: lease,
			Looks:  "the Timeout of each function in SAMEKEY_FUNCTIONS is at most 5 minutes",
			Causes: "after a process dies, retries get 409 until the function's Timeout has passed",
			Mend:   "shorten the Timeout, and do long work in a job",
		},
		{
			ID: "asynchronous", Severity: Warning, Needs: []Source{Functions, Policies, EventInvokes}, find: asynchronous,
			Looks:  "asynchronous events have enough retries and a long enough maximum age for the function's Timeout",
			Causes: "if a process dies, its event is lost, because Lambda makes no retry after the dead attempt's lease is over",
			Mend:   "set MaximumRetryAttempts to 2 and MaximumEventAgeInSeconds to twice the Timeout plus three minutes, or shorten the Timeout (docs/use/sources.md)",
		},
		{
			ID: "concurrency", Severity: Error, Needs: []Source{Functions, Concurrency}, find: concurrency,
			Looks:  "a function's reserved concurrency, if set, is above 0; the worker's is at least 3",
			Causes: "with 0, the function never runs. With less than 3, the worker's runs for stream, tickets and sweep wait for each other",
			Mend:   "remove ReservedConcurrentExecutions, or raise it",
		},
		{
			ID: "recursion", Severity: Note, Needs: []Source{Functions, Recursion}, find: recursion,
			Looks:  "Lambda ends recursive loops of the worker",
			Causes: "an accidental loop runs on at your cost. Samekey needs no loop, so let Lambda end loops",
			Mend:   "RecursiveLoop: Terminate",
		},
	}
}

func (fn *Function) wrong(format string, args ...any) wrong {
	return wrong{where: "function " + strings.TrimSuffix(fn.Name+":"+fn.Alias, ":"), what: fmt.Sprintf(format, args...)}
}

func envTable(f *Facts) ([]wrong, string) {
	var all []wrong
	for _, fn := range f.Functions {
		if name := fn.Env["IDEM_TABLE"]; name != "" && !f.sameTable(fn, name) {
			all = append(all, fn.wrong("IDEM_TABLE is %s", name))
		}
	}
	return all, ""
}

func envApp(f *Facts) ([]wrong, string) {
	w := f.worker()
	if w == nil {
		return nil, noWorker
	}
	var all []wrong
	apps := f.apps(w)
	for _, fn := range f.Functions {
		if app := fn.Env["SAMEKEY_APP"]; app != "" && app != apps[0] {
			all = append(all, fn.wrong("SAMEKEY_APP is %s, but another function has %s", app, apps[0]))
		}
	}
	return all, ""
}

// Facts.apps returns the possible values of the metrics' dimension App. If the worker
// sets SAMEKEY_APP, no other value is possible. Otherwise the values are each
// function's SAMEKEY_APP, and the worker's name.
func (f *Facts) apps(w *Function) (all []string) {
	if app := w.Env["SAMEKEY_APP"]; app != "" {
		return []string{app}
	}
	for _, fn := range f.Functions {
		if app := fn.Env["SAMEKEY_APP"]; app != "" {
			all = append(all, app)
		}
	}
	return append(all, w.Name)
}

func logLevel(f *Facts) ([]wrong, string) {
	var all []wrong
	for _, fn := range f.Functions {
		if fn.LogLevel == lambdatypes.ApplicationLogLevelError || fn.LogLevel == lambdatypes.ApplicationLogLevelFatal {
			all = append(all, fn.wrong("its ApplicationLogLevel is %s", fn.LogLevel))
		}
	}
	return all, ""
}

func completes(f *Facts) ([]wrong, string) {
	w := f.worker()
	if w == nil {
		return nil, noWorker
	}
	var all []wrong
	for _, name := range f.Gone {
		all = append(all, w.wrong("SAMEKEY_FUNCTIONS names %s, which doesn't exist", name))
	}
	return all, ""
}

func completesAll(f *Facts) ([]wrong, string) {
	w := f.worker()
	if w == nil {
		return nil, noWorker
	}
	var names []string
	for _, name := range list(w.Env["SAMEKEY_FUNCTIONS"]) {
		names = append(names, plain(name))
	}
	var all []wrong
	var told []string
	for _, r := range f.Sample {
		fn := r.Handler.Function
		if r.State == store.Open && r.Input != nil && fn != "" && !slices.Contains(names, fn) && !slices.Contains(told, fn) {
			told = append(told, fn)
			all = append(all, w.wrong("SAMEKEY_FUNCTIONS lacks %s, which has open operations with a stored request", fn))
		}
	}
	return all, ""
}

// Facts.completing returns the functions in the worker's SAMEKEY_FUNCTIONS.
func (f *Facts) completing() (all []*Function) {
	if w := f.worker(); w != nil {
		for _, name := range list(w.Env["SAMEKEY_FUNCTIONS"]) {
			if fn := f.function(name); fn != nil {
				all = append(all, fn)
			}
		}
	}
	return all
}

func workerTimeout(f *Facts) ([]wrong, string) {
	w := f.worker()
	if w == nil {
		return nil, noWorker
	}
	var all []wrong
	for _, fn := range f.completing() {
		if fn.Timeout >= w.Timeout {
			all = append(all, w.wrong("its Timeout is %v, but the Timeout of %s is %v", w.Timeout, fn.Name, fn.Timeout))
		}
	}
	return all, ""
}

func gatewayTimeout(f *Facts) ([]wrong, string) {
	var all []wrong
	seen := false
	for _, fn := range f.Functions {
		var told []string
		for _, g := range fn.Gateways {
			seen = true
			if fn.Timeout > g.Timeout && !slices.Contains(told, g.API) {
				told = append(told, g.API)
				all = append(all, fn.wrong("its Timeout is %v, but API %s waits only for %v", fn.Timeout, g.API, g.Timeout))
			}
		}
	}
	if !seen {
		return nil, "no API in front of the functions was found"
	}
	return all, ""
}

// asynchronous checks that Lambda retries asynchronous events often enough and for long
// enough. Lambda retries one minute after the first failure and two minutes after the
// second. If the first attempt died, the first retry waits until the attempt's lease is
// over. If the Timeout is more than a minute, this wait may leave the first retry too
// little time for the work. Then a second retry is needed.
func asynchronous(f *Facts) ([]wrong, string) {
	var all []wrong
	for _, fn := range f.Functions {
		if fn.Events == nil || fn == f.worker() {
			continue
		}
		needs, last := int32(1), fn.Timeout+time.Minute
		if fn.Timeout > time.Minute {
			needs, last = 2, 2*fn.Timeout+3*time.Minute
		}
		switch {
		case fn.Events.Retries < needs:
			all = append(all, fn.wrong("its MaximumRetryAttempts is %d, but a Timeout of %v needs %d", fn.Events.Retries, fn.Timeout, needs))
		case fn.Events.Age < last:
			all = append(all, fn.wrong("its MaximumEventAgeInSeconds is %v, but with a Timeout of %v the last necessary retry may start %v after the event", fn.Events.Age, fn.Timeout, last))
		}
	}
	return all, ""
}

func gatewayBytes(f *Facts) ([]wrong, string) {
	var all []wrong
	for _, fn := range f.Functions {
		var told []string
		for _, g := range fn.Gateways {
			if g.TextOnly && !slices.Contains(told, g.API) {
				told = append(told, g.API)
				all = append(all, fn.wrong("the REST API %s in front of the function has no binary media types", g.API))
			}
		}
	}
	return all, ""
}

func lease(f *Facts) ([]wrong, string) {
	var all []wrong
	for _, fn := range f.completing() {
		if fn.Timeout > 5*time.Minute {
			all = append(all, fn.wrong("its Timeout is %v", fn.Timeout))
		}
	}
	return all, ""
}

func concurrency(f *Facts) ([]wrong, string) {
	var all []wrong
	for _, fn := range f.Functions {
		switch {
		case fn.Reserved == nil:
		case *fn.Reserved == 0:
			all = append(all, fn.wrong("its reserved concurrency is 0"))
		case *fn.Reserved < 3 && fn == f.worker():
			w := fn.wrong("its reserved concurrency is %d", *fn.Reserved)
			w.severity = Warning
			all = append(all, w)
		}
	}
	return all, ""
}

func who(names []string) string { return strings.Join(names, ", ") }

func recursion(f *Facts) ([]wrong, string) {
	w := f.worker()
	switch {
	case w == nil:
		return nil, noWorker
	case w.Loops:
		return found(w.wrong("its RecursiveLoop is Allow"))
	}
	return found()
}
