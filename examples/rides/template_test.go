package rides_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/lambda/metrics"
)

const template = "../../template.yaml"

// resource is a resource of the template, as far as these tests look at it.
type resource struct {
	Type       string `yaml:"Type"`
	Properties struct {
		Namespace  string `yaml:"Namespace"`
		MetricName string `yaml:"MetricName"`
		Dimensions []struct {
			Name  string `yaml:"Name"`
			Value string `yaml:"Value"`
		} `yaml:"Dimensions"`
		MessageRetentionPeriod int `yaml:"MessageRetentionPeriod"` // in seconds
	} `yaml:"Properties"`
}

// resources are the template's, by their logical ids.
func resources(t *testing.T) map[string]resource {
	t.Helper()
	raw, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct {
		Resources map[string]resource `yaml:"Resources"`
	}
	if err := yaml.Unmarshal(raw, &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed.Resources
}

// A30: the alarms are on metrics that there are.
func TestAlarmsAreOnMetricsThatAreEmitted(t *testing.T) {
	t.Parallel()
	var known, watched []string
	for _, m := range metrics.All() {
		known = append(known, m.Name)
	}
	for name, r := range resources(t) {
		p := r.Properties
		if r.Type != "AWS::CloudWatch::Alarm" || p.Namespace != metrics.Namespace {
			continue
		}
		watched = append(watched, p.MetricName)
		if !slices.Contains(known, p.MetricName) {
			t.Errorf("%s is on %s, which nobody emits", name, p.MetricName)
		}
		if len(p.Dimensions) != 1 || p.Dimensions[0].Name != "App" || p.Dimensions[0].Value != rides.MetricsApp {
			t.Errorf("%s has the dimensions %v", name, p.Dimensions)
		}
	}
	for _, name := range []string{
		metrics.Mismatch, metrics.Stuck, metrics.Blocked, metrics.NotMine, metrics.ExpiredOpen, metrics.Abandoned,
		metrics.SweepOverdue,
	} {
		if !slices.Contains(watched, name) {
			t.Errorf("no alarm is on %s", name)
		}
	}
}

// Each main finds in its environment what it can't do without, and the template
// sets nothing that no main reads.
func TestFunctionsGetTheSettingsTheyRead(t *testing.T) {
	t.Parallel()
	parsed, err := sam.Load(template)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Set("Table", "StreamArn", "arn:of:the:stream")
	parsed.Set("ReceiptsQueue", "", "https://receipts")
	parsed.Set("TicketsQueue", "", "https://tickets")
	functions, err := parsed.Functions()
	if err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile(`env\.(\w+)\("(\w+)"`)
	var names []string
	for _, f := range functions {
		names = append(names, f.ID)
		if f.ID == "Worker" {
			if want := filepath.Join("dist", "samekey-worker", "bootstrap"); !strings.HasSuffix(f.Bootstrap, want) {
				t.Errorf("%s is %s, want %s", f.ID, f.Bootstrap, want)
			}
			continue // it refuses what it doesn't read, or misses
		}
		src, err := os.ReadFile(filepath.Join("cmd", strings.ToLower(f.ID), "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		var reads []string
		for _, m := range read.FindAllStringSubmatch(string(src), -1) {
			kind, name := m[1], m[2]
			reads = append(reads, name)
			if kind == "Text" && f.Environment[name] == "" {
				t.Errorf("%s reads %s, which the template doesn't set", f.ID, name)
			}
		}
		for name := range maps.Keys(f.Environment) {
			if !slices.Contains(reads, name) {
				t.Errorf("%s is given %s, which it doesn't read", f.ID, name)
			}
		}
		if want := filepath.Join("dist", strings.ToLower(f.ID), "bootstrap"); !strings.HasSuffix(f.Bootstrap, want) {
			t.Errorf("%s is %s, want %s", f.ID, f.Bootstrap, want)
		}
	}
	slices.Sort(names)
	if want := []string{"Authorizer", "Receipts", "Rides", "Worker"}; !slices.Equal(names, want) {
		t.Errorf("functions %v, want %v", names, want)
	}
}

// docs/sources.md: a key has to be known for longer than its message can come
// again, by way of the dead letters as well.
func TestReceiptsAreRememberedLongerThanTheirMessages(t *testing.T) {
	t.Parallel()
	all := resources(t)
	queue, letters := all["ReceiptsQueue"].Properties.MessageRetentionPeriod, all["ReceiptsDeadLetters"].Properties.MessageRetentionPeriod
	if queue == 0 || letters == 0 {
		t.Fatalf("the queues keep messages for %d s and %d s", queue, letters)
	}
	var got idem.Options
	rides.Engine(&idem.MemoryStore{}, rides.ReceiptsNamespace, func(o *idem.Options) { got = *o })
	if lifetime := time.Duration(queue+letters) * time.Second; got.RetryWindow < lifetime || got.Retention < lifetime {
		t.Errorf("messages come for %v, and keys are known for %v (retry window %v)", lifetime, got.Retention, got.RetryWindow)
	}
}

// Roles let a function touch the records of its namespace only: another name in
// the code would lock it out.
func TestRolesKnowTheNamespaces(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]int)
	for _, m := range regexp.MustCompile(`dynamodb:LeadingKeys: \[v1#(\w+)#\*[],]`).FindAllStringSubmatch(string(raw), -1) {
		got[m[1]]++
	}
	if want := map[string]int{rides.RidesNamespace: 2, rides.ReceiptsNamespace: 1}; !maps.Equal(got, want) {
		t.Errorf("roles for namespaces %v, want %v", got, want)
	}
	st := inMemory(t)
	st.post(t, jane, "k", trip).is(t, 201)
	if pk := st.record(t).PK; !strings.HasPrefix(pk, "v1#"+rides.RidesNamespace+"#") {
		t.Errorf("a record has the key %s", pk)
	}
}
