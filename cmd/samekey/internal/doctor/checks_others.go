package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/samekey/samekey/internal/metrictable"
)

func otherChecks() []Check {
	return []Check{
		{
			ID: "alarms", Severity: Warning, Needs: []Source{Functions, Alarms}, find: alarms,
			Looks:  "each metric of Samekey that needs an alarm has an alarm for the worker's App",
			Causes: "operations wait for people, and nobody is told",
			Mend:   "deploy the alarms of samekey.yaml, with the same App in all functions",
		},
		{
			ID: "alarms-heard", Severity: Note, Needs: []Source{Functions, Alarms}, find: alarmsHeard,
			Looks:  "each alarm on Samekey's metrics notifies somebody",
			Causes: "nobody sees these alarms outside the console",
			Mend:   "set the parameter AlarmTopicArn",
		},
		{
			ID: "hooks", Severity: Warning, Needs: []Source{Functions, ScanTable, Metrics}, find: hooks,
			Looks:  "if the sample has requests, the metric Requests exists for the worker's App",
			Causes: "the alarms " + who(ofHooks()) + " never ring",
			Mend:   "set each engine's Options.Hooks to metrics.New(os.Stdout, os.Getenv(\"SAMEKEY_APP\")).Hooks() (docs/operate/signals.md)",
		},
		{
			ID: "schedules", Severity: Error, Needs: []Source{Functions, Policies, Schedules}, find: schedules,
			Looks:  "the schedules for the worker's tasks sweep and count are enabled",
			Causes: "without the sweep, lost work isn't found. Without the count, waiting operations aren't counted",
			Mend:   "deploy WorkerSweep and WorkerCount of samekey.yaml, or enable them",
		},
		{
			ID: "schedule-role", Severity: Error, Needs: []Source{Functions, ScheduleRole, Simulation}, find: scheduleRole,
			Looks:  "EventBridge Scheduler may assume SAMEKEY_SCHEDULE_ROLE, and the role may send tickets",
			Causes: "if Scheduler can't assume the role, tickets of later jobs wait in their queue. If the role can't send tickets, later jobs wait for the sweep",
			Mend:   "deploy LaterRole of samekey.yaml",
		},
		{
			ID: "rights", Severity: Error, find: rights,
			Looks:  "--as names a role, and your credentials permit this role's calls to the table",
			Causes: "DynamoDB refuses calls that the role needs",
			Mend:   "for a function or worker, attach FunctionPolicy or WorkerPolicy of samekey.yaml; for operators, see docs/operate/background.md",
		},
		{
			ID: "versions", Severity: Warning, Needs: []Source{Functions, Code}, find: versions,
			Looks:  "the functions, the worker and this command have the same version of Samekey",
			Causes: "adjacent releases can share a table; if the releases are further apart, the older program refuses records of the newer program (500, record_corrupt)",
			Mend:   "build and deploy functions and worker with the version of Samekey in go.mod, and run the same version of this command",
		},
		{
			ID: "clock", Severity: Warning, Needs: []Source{ServerClock}, find: clock,
			Looks:  "this machine's clock is within 5 seconds of DynamoDB's",
			Causes: "this machine takes over operations and expires keys too early or too late; safety doesn't depend on the clock",
			Mend:   "synchronise the clock (NTP)",
		},
	}
}

// Facts.watched returns the alarms on the named metric whose dimension App has a value
// in the list apps.
func (f *Facts) watched(metric string, apps []string) (all []types.MetricAlarm) {
	for _, a := range f.Alarms {
		if aws.ToString(a.Namespace) == metrictable.Namespace && aws.ToString(a.MetricName) == metric &&
			slices.ContainsFunc(a.Dimensions, func(d types.Dimension) bool {
				return aws.ToString(d.Name) == "App" && slices.Contains(apps, aws.ToString(d.Value))
			}) {
			all = append(all, a)
		}
	}
	return all
}

func alarms(f *Facts) ([]wrong, string) {
	w := f.worker()
	if w == nil {
		return nil, noWorker
	}
	apps := f.apps(w)
	var missing []string
	for _, m := range metrictable.All() {
		if m.Alarm.Name != "" && len(f.watched(m.Name, apps)) == 0 {
			missing = append(missing, m.Name)
		}
	}
	if len(missing) == 0 {
		return found()
	}
	return found(wrong{where: "alarms of App " + apps[0], what: "no alarm on " + who(missing)})
}

func alarmsHeard(f *Facts) ([]wrong, string) {
	w := f.worker()
	if w == nil {
		return nil, noWorker
	}
	apps := f.apps(w)
	var silent []string
	for _, m := range metrictable.All() {
		all := f.watched(m.Name, apps)
		if len(all) > 0 && !slices.ContainsFunc(all, func(a types.MetricAlarm) bool { return len(a.AlarmActions) > 0 && aws.ToBool(a.ActionsEnabled) }) {
			silent = append(silent, m.Name)
		}
	}
	if len(silent) == 0 {
		return found()
	}
	return found(wrong{where: "alarms of App " + apps[0], what: "these notify nobody: " + who(silent)})
}

// ofHooks returns the names of the alarms on metrics that functions write.
func ofHooks() (all []string) {
	for _, m := range metrictable.All() {
		if m.Alarm.Name != "" && (m.Source == "request" || m.Source == "store") {
			all = append(all, m.Alarm.Name)
		}
	}
	return all
}

// If a request's age is between listedFrom and listedTo, CloudWatch lists the request's
// metrics.
const (
	listedFrom = time.Hour
	listedTo   = 13 * 24 * time.Hour
)

func hooks(f *Facts) ([]wrong, string) {
	w := f.worker()
	if w == nil {
		return nil, noWorker
	}
	apps := f.apps(w)
	counted := slices.ContainsFunc(f.Counted, func(app string) bool { return slices.Contains(apps, app) })
	for _, r := range f.Sample {
		if age := f.Now.Sub(r.Run); !counted && age >= listedFrom && age <= listedTo {
			return found(wrong{where: "metrics of App " + apps[0], what: "the metric Requests is missing, though the sample has a request that ran at " + r.Run.UTC().Format(time.RFC3339)})
		}
	}
	return found()
}

// roles lists, for each role, the calls that the role makes on the table.
var roles = map[string][]Source{
	"function": {TryGet, TryPut, TryUpdate},
	"worker":   {TryGet, TryUpdate, ScanTable},
	"operator": {TryGet, TryUpdate, TryQuery, ScanTable},
}

// Roles returns the roles that [Options].As can name.
func Roles() []string { return []string{"function", "worker", "operator"} }

func rights(f *Facts) ([]wrong, string) {
	if f.Options.As == "" {
		return nil, "no role given: give --as function, worker or operator"
	}
	var all []wrong
	for _, s := range roles[f.Options.As] {
		if why, ok := f.Refused[s]; ok {
			all = append(all, wrong{where: "your credentials, compared with the role " + f.Options.As, what: fmt.Sprintf("%s is refused (%s)", s, why)})
		}
	}
	if len(all) > 0 {
		return all, ""
	}
	return nil, f.missing(roles[f.Options.As])
}

func clock(f *Facts) ([]wrong, string) {
	// the limit is 5 seconds. Another second is for the Date header, which has whole
	// seconds, and for the time that the answer took to arrive.
	if d := f.Skew.Abs(); d > 5*time.Second+time.Second {
		side := "ahead"
		if f.Skew < 0 {
			side = "behind"
		}
		return found(wrong{where: "this machine's clock", what: fmt.Sprintf("it is %v %s", d.Round(time.Second), side)})
	}
	return found()
}

// The versions check compares the programs' versions of Samekey.
func versions(f *Facts) ([]wrong, string) {
	var known, unknown []string
	programs := make(map[string][]string) // for each version of Samekey, the names of the programs that contain it
	add := func(program, version, why string) {
		switch {
		case version != "":
			if programs[version] == nil {
				known = append(known, version)
			}
			programs[version] = append(programs[version], program)
		case why != "":
			unknown = append(unknown, program+" "+why)
		}
	}
	for _, fn := range f.Functions {
		add(fn.Name, fn.Version, fn.Unversioned)
	}
	if len(known)+len(unknown) == 0 {
		return nil, "no function that contains Samekey was found"
	}
	if own := f.Options.Version; strings.HasPrefix(own, "v") {
		add("this command", own, "")
	} else if own != "" {
		add("this command", "", "was built from a checkout and has no version")
	}
	var found []wrong
	if len(known) > 1 {
		var each []string
		for _, v := range known {
			each = append(each, v+" is in "+who(programs[v]))
		}
		found = []wrong{{where: "versions of Samekey", what: strings.Join(each, "; ")}}
	}
	return found, strings.Join(unknown, "; ")
}
