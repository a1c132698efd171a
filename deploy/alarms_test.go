package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/metrictable"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/alarmtest"
)

const runbook = "../docs/operate/runbook.md"

// alarms returns the stack's alarms by the name of their section in the runbook.
func alarms(t *testing.T, text string) map[string]alarmtest.Alarm {
	t.Helper()
	all, err := alarmtest.Parse(text, map[string]string{"App": "rides", "AlarmTopicArn": "topic"})
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]alarmtest.Alarm)
	for id, a := range all {
		name, ok := strings.CutSuffix(id, "Alarm")
		if !ok {
			t.Errorf("alarm %s: its name doesn't end in Alarm", id)
		}
		byName[name] = a
	}
	return byName
}

// Each alarm has a section in the runbook that its description links to, and each
// section is about an alarm, says four things and names commands only that there are.
func TestRunbookHasEachAlarm(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(raw), "\n## ")
	sections := make(map[string]string)
	for s := range strings.SplitSeq("\n"+body, "\n## ") {
		name, text, _ := strings.Cut(strings.TrimPrefix(s, "\n"), "\n")
		sections[name] = text
	}
	const walk = "From an alarm to the answer" // a test of cmd/samekey follows it
	if sections[walk] == "" {
		t.Errorf("the runbook has no section %q", walk)
	}
	delete(sections, walk)
	said := maps.Clone(sections)
	for name, a := range alarms(t, Nested()) {
		if _, ok := sections[name]; !ok {
			t.Errorf("the runbook has no section %s", name)
		}
		if want := "See https://github.com/samekey/samekey/blob/main/docs/operate/runbook.md#" + strings.ToLower(name) + "."; !strings.HasSuffix(a.Description, want) {
			t.Errorf("%s: the description %q doesn't end in %q", name, a.Description, want)
		}
		delete(sections, name)
	}
	for _, reason := range state.Reasons {
		for _, verb := range reason.Verbs {
			if !strings.Contains(said[reason.Metric], "`samekey "+verb+" ") {
				t.Errorf("the runbook's section %s doesn't have samekey %s", reason.Metric, verb)
			}
		}
	}
	for name := range sections {
		t.Errorf("the runbook's section %s is about no alarm", name)
	}
	for s := range strings.SplitSeq("\n"+body, "\n## ") {
		for _, part := range []string{"**Meaning.**", "**Look.**", "**Do.**", "**Don't.**"} {
			name, _, _ := strings.Cut(strings.TrimPrefix(s, "\n"), "\n")
			if strings.Count(s, part) != 1 && name != walk {
				t.Errorf("section %s says %s %d times", name, part, strings.Count(s, part))
			}
		}
	}
}

// Each line of a log that the runbook names is a text of a program.
func TestRunbookNamesLinesThatAreLogged(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != "." && !slices.Contains([]string{"idem", "dynamo", "lambda", "internal", "kms", "seal"}, strings.Split(path, "/")[0]) {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile("../" + path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("(?:line|or) `([^`$]+ [^`$]+)`").FindAllSubmatch(raw, -1)
	named = slices.DeleteFunc(named, func(m [][]byte) bool { return bytes.HasPrefix(m[1], []byte("samekey ")) }) // commands
	if len(named) < 4 {
		t.Errorf("the runbook names %d lines", len(named))
	}
	for _, line := range named {
		if !strings.Contains(code.String(), `"`+string(line[1])+`"`) {
			t.Errorf("no program logs the line %q", line[1])
		}
	}
}

// measured are the metrics of AWS's services that alarms are on: names and dimensions
// of their documentation, and a value that is trouble.
var measured = map[string]struct {
	metric alarmtest.Metric
	value  float64
}{
	"WorkerErrors":    {alarmtest.Metric{Namespace: "AWS/Lambda", Name: "Errors", Dimensions: map[string]string{"FunctionName": "Worker"}}, 1},
	"WorkerThrottles": {alarmtest.Metric{Namespace: "AWS/Lambda", Name: "Throttles", Dimensions: map[string]string{"FunctionName": "Worker"}}, 1},
	"IteratorAge":     {alarmtest.Metric{Namespace: "AWS/Lambda", Name: "IteratorAge", Dimensions: map[string]string{"FunctionName": "Worker"}}, 4e6},
	"GivenUp": {alarmtest.Metric{
		Namespace: "AWS/Lambda", Name: "OnFailureDestinationDeliveredEventCount", Dimensions: map[string]string{"EventSourceMappingUUID": "WorkerStream"},
	}, 1},
	"GivenUpLost": {alarmtest.Metric{Namespace: "AWS/Lambda", Name: "DestinationDeliveryFailures", Dimensions: map[string]string{"FunctionName": "Worker"}}, 1},
	"Recursion":   {alarmtest.Metric{Namespace: "AWS/Lambda", Name: "RecursiveInvocationsDropped", Dimensions: map[string]string{"FunctionName": "Worker"}}, 1},
	"DeadLetters": {alarmtest.Metric{
		Namespace: "AWS/SQS", Name: "ApproximateNumberOfMessagesVisible", Dimensions: map[string]string{"QueueName": "TicketsDeadLetters.QueueName"},
	}, 1},
	"TableThrottles": {alarmtest.Metric{Namespace: "AWS/DynamoDB", Name: "WriteThrottleEvents", Dimensions: map[string]string{"TableName": "Table"}}, 1},
}

// The alarms on metrics of AWS's services fire while the service reports trouble, and
// end after it.
func TestAlarmsOnAWS(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := alarms(t, Nested())
	for name, m := range measured {
		var data alarmtest.Data
		for at := range 48 * 60 { // an hour fine, an hour trouble, then fine
			value := 0.0
			if at >= 60 && at < 120 {
				value = m.value
			}
			data.Add(m.metric, begin.Add(time.Duration(at)*time.Minute), value)
		}
		var got []alarmtest.State
		var began, ended time.Duration
		for _, c := range all[name].Over(data, begin, begin.Add(48*time.Hour)) {
			if got = append(got, c.State); c.State == alarmtest.Firing {
				began = c.At.Sub(begin)
			} else {
				ended = c.At.Sub(begin)
			}
		}
		want := []alarmtest.State{alarmtest.Insufficient, alarmtest.OK, alarmtest.Firing, alarmtest.OK}
		if !slices.Equal(got, want) || began > 75*time.Minute || ended < 2*time.Hour || ended > 28*time.Hour {
			t.Errorf("%s: %v; it fires after %v and ends after %v", all[name], got, began, ended)
		}
	}
}

// wrong returns what is wrong with the alarms on the toolkit's own metrics, as far as
// it can be seen without data.
func wrong(t *testing.T, text string) (all []string) {
	t.Helper()
	left := alarms(t, text)
	for name, a := range left {
		if a.Actions != 1 || a.OKActions != 1 {
			all = append(all, name+": nobody hears of it, or of its end")
		}
	}
	for name := range measured {
		delete(left, name)
	}
	for _, m := range metrictable.All() {
		a, there := left[m.Alarm.Name]
		switch {
		case m.Alarm.Name == "":
			continue
		case !there:
			all = append(all, m.Name+": there is no alarm "+m.Alarm.Name)
			continue
		case len(a.Queries) != 1 || !cmp.Equal(a.Queries[0].Metric, alarmtest.Metric{Namespace: metrictable.Namespace, Name: m.Name, Dimensions: map[string]string{"App": "rides"}}):
			all = append(all, fmt.Sprintf("%s: it is on %v, and not on %s", a.Name, a.Metrics(), m.Name))
		case a.Condition() != m.Alarm.Condition:
			all = append(all, fmt.Sprintf("%s: it fires at %q, by the list at %q", a.Name, a.Condition(), m.Alarm.Condition))
		}
		delete(left, m.Alarm.Name)
	}
	for name := range left {
		all = append(all, name+": it is in no list")
	}
	slices.Sort(all)
	return all
}

// Each alarm is on the metric, dimension and condition of the list, and tells somebody.
func TestAlarmsCanFire(t *testing.T) {
	t.Parallel()
	if got := wrong(t, Nested()); len(got) > 0 {
		t.Error(strings.Join(got, "\n"))
	}
}

// Two stacks of an account have alarms on metrics of their own, without parameters, and the
// worker and the functions write under the name that the alarms are on.
func TestEachStackHasItsOwnAlarms(t *testing.T) {
	t.Parallel()
	for _, stack := range []string{"orders-test", "orders-production"} {
		all, err := alarmtest.Parse(Nested(), map[string]string{"HasApp": "false", "AWS::StackName": stack})
		if err != nil {
			t.Fatal(err)
		}
		for name, a := range all {
			if m := a.Queries[0].Metric; m.Namespace == metrictable.Namespace && m.Dimensions["App"] != stack {
				t.Errorf("%s of stack %s is on App %q", name, stack, m.Dimensions["App"])
			}
		}
	}
	const name = "!If [HasApp, !Ref App, !Ref AWS::StackName]\n"
	for _, place := range []string{"SAMEKEY_APP: ", "- Name: ", "  App:\n    Description: The name for SAMEKEY_APP of the functions.\n    Value: "} {
		if !strings.Contains(Nested(), place+name) {
			t.Errorf("%s is not %s", place, name)
		}
	}
}

// The dashboard is JSON, its widgets lie beside each other, show each metric of the
// toolkit and no other, and link to sections of the runbook that there are.
func TestDashboard(t *testing.T) {
	t.Parallel()
	type widget struct {
		X, Y, Width, Height int
		Properties          struct {
			Title, Markdown string
			Metrics         [][]any
		}
	}
	var body struct{ Widgets []widget }
	text := read(t, Nested()).Resources["Dashboard"].Properties.DashboardBody.Content[0].Value
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]bool)
	taken := make(map[[2]int]string)
	for _, w := range body.Widgets {
		if w.Width < 1 || w.Height < 1 || w.X < 0 || w.Y < 0 || w.X+w.Width > 24 {
			t.Errorf("%q lies outside of the dashboard", w.Properties.Title)
		}
		for x := w.X; x < w.X+w.Width; x++ {
			for y := w.Y; y < w.Y+w.Height; y++ {
				if other, ok := taken[[2]int{x, y}]; ok {
					t.Errorf("%q lies on %q", w.Properties.Title, other)
				}
				taken[[2]int{x, y}] = w.Properties.Title
			}
		}
		var last []any
		for _, m := range w.Properties.Metrics {
			for i, v := range m {
				if v == "." { // as in the row before
					m[i] = last[i]
				}
			}
			if last = m; len(m) < 4 || m[0] != metrictable.Namespace {
				continue // of AWS, or an expression
			}
			if m[2] != "App" || m[3] != "${Name}" {
				t.Errorf("%q shows %v", w.Properties.Title, m)
			}
			shown[fmt.Sprint(m[1])] = true
		}
		for _, link := range regexp.MustCompile(`runbook\.md#(\w+)`).FindAllStringSubmatch(w.Properties.Markdown, -1) {
			if raw, err := os.ReadFile(runbook); err != nil || !strings.Contains(strings.ToLower(string(raw)), "\n## "+link[1]+"\n") {
				t.Errorf("a link to the section %s (%v)", link[1], err)
			}
		}
	}
	want := make(map[string]bool)
	for _, m := range metrictable.All() {
		want[m.Name] = true
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("the metrics (-there are +shown):\n%s", diff)
	}
}
