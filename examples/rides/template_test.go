package rides_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/metrictable"
)

const (
	template = "../../template.yaml"
	nested   = "../../deploy/samekey.yaml" // the stack of records and worker
)

// resource is a resource of the template, as far as these tests look at it.
type resource struct {
	Type       string `yaml:"Type"`
	Properties struct {
		Namespace              string `yaml:"Namespace"`
		MetricName             string `yaml:"MetricName"`
		MessageRetentionPeriod int    `yaml:"MessageRetentionPeriod"` // in seconds
	} `yaml:"Properties"`
}

// resources are those of both templates, by their logical ids.
func resources(t *testing.T) map[string]resource {
	t.Helper()
	all := make(map[string]resource)
	for prefix, path := range map[string]string{"": template, "Samekey.": nested} {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var parsed struct {
			Resources map[string]resource `yaml:"Resources"`
		}
		if err := yaml.Unmarshal(raw, &parsed); err != nil {
			t.Fatal(err)
		}
		for id, r := range parsed.Resources {
			all[prefix+id] = r
		}
	}
	return all
}

// The alarms are on the metrics that the list says.
func TestAlarmsAreOnMetricsThatAreEmitted(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, m := range metrictable.All() {
		if m.Alarm.Name != "" {
			listed = append(listed, m.Name)
		}
	}
	watched := alarmed(t)
	slices.Sort(watched)
	slices.Sort(listed)
	if !slices.Equal(watched, listed) {
		t.Errorf("alarms are on %v, by the list on %v", watched, listed)
	}
}

// docs/use/sources.md: a key has to be known for longer than its message can come
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
	if lifetime := time.Duration(queue+letters) * time.Second; got.Retention < lifetime {
		t.Errorf("messages come for %v, and keys are known for %v", lifetime, got.Retention)
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
	for _, m := range regexp.MustCompile(`"dynamodb:LeadingKeys": \["v1#(\w+)#\*"\]`).FindAllStringSubmatch(string(raw), -1) {
		got[m[1]]++
	}
	if want := map[string]int{rides.RidesNamespace: 1, rides.ReceiptsNamespace: 1}; !maps.Equal(got, want) {
		t.Errorf("roles for namespaces %v, want %v", got, want)
	}
	st := inMemory(t)
	st.post(t, jane, "k", trip).is(t, 201)
	if pk := st.record(t).PK; !strings.HasPrefix(pk, "v1#"+rides.RidesNamespace+"#") {
		t.Errorf("a record has the key %s", pk)
	}
}
