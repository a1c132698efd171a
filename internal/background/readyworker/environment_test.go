package readyworker

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/deploy"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/seal"
)

// sound is an environment with every variable.
func sound() map[string]string {
	return map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "IDEM_TABLE": "records",
		"SAMEKEY_TICKETS_URL": "https://sqs.us-east-1.amazonaws.com/1/tickets",
		"SAMEKEY_SINKS": "receipt=sqs:https://sqs.us-east-1.amazonaws.com/1/receipts.fifo, copy=sqs:https://sqs.us-east-1.amazonaws.com/1/receipts.fifo,\n" +
			"news=sns:arn:aws:sns:us-east-1:1:news,audit=events:default,index=lambda:indexer:live," +
			"ship=states:arn:aws:states:us-east-1:1:stateMachine:ship,pack=durable:packer:live",
		"SAMEKEY_FUNCTIONS":  "rides,arn:aws:lambda:us-east-1:1:function:refunds:live",
		"SAMEKEY_NAMESPACES": "rides\trefunds\nreturns taxis," + strings.Repeat("n", 64), "SAMEKEY_GRACE": "24h",
		"SAMEKEY_SWEEP_LATE": "10m", "SAMEKEY_SWEEP_PAGES": "8", "SAMEKEY_EVENT_SOURCE": "rides", "SAMEKEY_APP": "rides",
		"SAMEKEY_SCHEDULE_ROLE": "arn:aws:iam::1:role/tickets",
		"SAMEKEY_LEASE_MARGIN":  "1s", // of another function of the stack
	}
}

func environ(change map[string]string) (list []string) {
	env := sound()
	maps.Copy(env, change)
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

func TestWorkerOfASoundEnvironment(t *testing.T) {
	t.Parallel()
	const least = "AWS_REGION=x AWS_ACCESS_KEY_ID=x AWS_SECRET_ACCESS_KEY=x IDEM_TABLE=records SAMEKEY_TICKETS_URL=http://127.0.0.1:1/q"
	for name, tc := range map[string]struct {
		environ []string
		want    settings
		sinks   int
	}{
		"all": {environ(nil), settings{
			Grace: 24 * time.Hour, Namespaces: []string{"rides", "refunds", "returns", "taxis", strings.Repeat("n", 64)}, Functions: []string{"refunds", "rides"},
			Late: 10 * time.Minute, Pages: 8,
		}, 7},
		"the least": {strings.Fields(least), settings{}, 0},
	} {
		var got worker.Options
		if w, err := build(tc.environ, nil, Settings{}, func(o *worker.Options) { got = *o }); w == nil || err != nil {
			t.Fatalf("%s: got %v, %v", name, w, err)
		}
		var sweep stream.SweepOptions
		got.Sweep(&sweep)
		is := settings{
			Grace: got.Grace, Namespaces: got.Namespaces, Functions: slices.Sorted(maps.Keys(got.Functions.(completer.Functions))),
			Late: sweep.Late, Pages: sweep.PagesPerSecond,
		}
		if diff := cmp.Diff(tc.want, is, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if len(got.Sink.(jobs.Route)) != tc.sinks || got.Logger == nil || got.Hooks.Swept == nil || got.Hooks.Parked == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// settings are those of a worker that its variables say.
type settings struct {
	Grace                 time.Duration
	Namespaces, Functions []string
	Late                  time.Duration
	Pages                 float64
}

// A mistake is refused, in a line that names the variable and says what to write.
func TestMistakesAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ variable, value, write string }{
		"no table":               {"IDEM_TABLE", "", "the name of the table"},
		"a table that is none":   {"IDEM_TABLE", "not a table", "the name or ARN of a table"},
		"no queue":               {"SAMEKEY_TICKETS_URL", "", "the URL of a standard SQS queue"},
		"a queue's name":         {"SAMEKEY_TICKETS_URL", "tickets", "the URL of a standard SQS queue"},
		"a FIFO queue":           {"SAMEKEY_TICKETS_URL", "https://x/1/tickets.fifo", "the URL of a standard SQS queue"},
		"a sink without a kind":  {"SAMEKEY_SINKS", "=events:default", "KIND=sqs:URL"},
		"a sink without target":  {"SAMEKEY_SINKS", "audit=events:", "KIND=sqs:URL"},
		"a kind alone":           {"SAMEKEY_SINKS", "audit", "KIND=sqs:URL"},
		"an unknown service":     {"SAMEKEY_SINKS", "audit=kafka:x", "KIND=sqs:URL"},
		"a kind twice":           {"SAMEKEY_SINKS", "a=events:x,a=sqs:y", "each kind once"},
		"an ARN for a queue":     {"SAMEKEY_SINKS", "a=sqs:arn:aws:sqs:us-east-1:1:q", "a queue's URL"},
		"a machine's name":       {"SAMEKEY_SINKS", "a=states:ship", "a state machine's ARN"},
		"an execution":           {"SAMEKEY_SINKS", "a=states:arn:aws:states:us-east-1:1:execution:ship:x", "a state machine's ARN"},
		"the tickets' own queue": {"SAMEKEY_SINKS", "a=sqs:" + sound()["SAMEKEY_TICKETS_URL"] + "/", "another queue than SAMEKEY_TICKETS_URL"},
		"no version":             {"SAMEKEY_SINKS", "a=durable:packer", "its version or alias"},
		"no version in the ARN":  {"SAMEKEY_SINKS", "a=durable:arn:aws:lambda:us-east-1:1:function:packer", "its version or alias"},
		"a name for a topic":     {"SAMEKEY_SINKS", "a=sns:news", "a topic's ARN"},
		"a queue for a topic":    {"SAMEKEY_SINKS", "a=sns:arn:aws:sqs:us-east-1:1:news", "a topic's ARN"},
		"half a topic's ARN":     {"SAMEKEY_SINKS", "a=sns:aws:sns:us-east-1:1:news", "a topic's ARN"},
		"a version of nothing":   {"SAMEKEY_SINKS", "a=durable::live", "its version or alias"},
		"a user's ARN":           {"SAMEKEY_SCHEDULE_ROLE", "arn:aws:iam::1:user/tickets", "a role's ARN"},
		"half a role's ARN":      {"SAMEKEY_SCHEDULE_ROLE", "aws:iam::1:role/tickets", "a role's ARN"},
		"too many pages":         {"SAMEKEY_SWEEP_PAGES", "1001", "from 1 to 1000"},
		"a long namespace":       {"SAMEKEY_NAMESPACES", strings.Repeat("n", 65), "at most 64"},
		"a function twice":       {"SAMEKEY_FUNCTIONS", "rides,rides:live", "one alias or version"},
		"a function of no name":  {"SAMEKEY_FUNCTIONS", ":live", "names or ARNs of functions"},
		"a namespace of no name": {"SAMEKEY_NAMESPACES", "a#b", "letters, digits"},
		"a grace without unit":   {"SAMEKEY_GRACE", "300", "with its unit"},
		"no grace at all":        {"SAMEKEY_GRACE", "0s", "above 0"},
		"a grace in days":        {"SAMEKEY_GRACE", "3d", "72h"},
		"a grace of weeks":       {"SAMEKEY_GRACE", "24h0m1s", "at most 24h"},
		"a sweep that is late":   {"SAMEKEY_SWEEP_LATE", "-1m", "above 0"},
		"late for ever":          {"SAMEKEY_SWEEP_LATE", "ever", "above 0"},
		"no pages":               {"SAMEKEY_SWEEP_PAGES", "0", "from 1 to 1000"},
		"a role's name":          {"SAMEKEY_SCHEDULE_ROLE", "tickets", "a role's ARN"},
		"pages in words":         {"SAMEKEY_SWEEP_PAGES", "five", "from 1 to 1000"},
		"a misspelt variable":    {"SAMEKEY_SINK", "a=events:x", "SAMEKEY_SINKS"},
		"FIPS in words":          {"AWS_USE_FIPS_ENDPOINT", "yes", "true or false"},
		"no region":              {"AWS_REGION", "", "Lambda sets it"},
		"keys without KMS":       {"SAMEKEY_KMS_KEYS", "arn:aws:kms:us-east-1:1:key/a", "build github.com/samekey/samekey/kms/cmd/samekey-worker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := build(environ(map[string]string{test.variable: test.value}), nil, Settings{})
			if err == nil || w != nil {
				t.Fatalf("%s=%s is taken", test.variable, test.value)
			}
			if lines := strings.Split(err.Error(), "\n"); len(lines) != 1 || !strings.HasPrefix(lines[0], test.variable+" ") || !strings.Contains(lines[0], test.write) {
				t.Errorf("%s=%s is refused with %q, want one line that begins with the variable and has %q", test.variable, test.value, err, test.write)
			}
		})
	}
	t.Run("all at once", func(t *testing.T) {
		t.Parallel()
		_, err := build(environ(map[string]string{"IDEM_TABLE": "", "SAMEKEY_GRACE": "1", "SAMEKEY_SINKS": "x"}), nil, Settings{})
		if err == nil || strings.Count(err.Error(), "\n") != 2 {
			t.Errorf("got %v, want three lines", err)
		}
	})
}

// Kinds with the same target have one sink, so that their order holds.
func TestKindsOfOneTargetShareASink(t *testing.T) {
	t.Parallel()
	env := newEnvironment(environ(nil))
	route := env.sinks(clients{env: env})
	if env.err() != nil || len(route) != 7 || !route.Together("receipt", "copy") || route.Together("receipt", "audit") {
		t.Errorf("got %v, %v", route, env.err())
	}
}

// Each sink calls its service at the endpoint of the environment, with its credentials, and
// says where to.
func TestSinksCallTheirServices(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // an empty one is seen below
		call := stdcmp.Or(r.Header.Get("X-Amz-Target"), r.URL.Path)
		if r.Header.Get("X-Amz-Durable-Execution-Name") != "" {
			call += " durable"
		}
		for _, to := range []string{"receipts.fifo", `"default"`, `"rides"`, "Action=Publish", "%3Anews", "stateMachine:ship"} {
			if strings.Contains(string(body), to) {
				call += " " + to
			}
		}
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=test/") || !strings.Contains(r.Header.Get("Authorization"), "/us-east-1/") || r.Header.Get("X-Amz-Security-Token") != "session" {
			call += " by " + r.Header.Get("Authorization")
		}
		mu.Lock()
		got = append(got, call)
		mu.Unlock()
		w.WriteHeader(http.StatusForbidden)
	}))
	defer service.Close()
	env := newEnvironment(environ(map[string]string{"AWS_ENDPOINT_URL": service.URL, "AWS_SESSION_TOKEN": "session"}))
	route := env.sinks(clients{env: env})
	for kind := range route {
		if errs := route.Deliver(t.Context(), []jobs.Delivery{{JobID: "1", Kind: kind, Args: []byte("{}"), Group: "g"}}); errs[0] == nil {
			t.Errorf("%s is delivered", kind)
		}
	}
	for _, role := range []string{"", "arn:aws:iam::1:role/tickets"} {
		later := []jobs.Ticket{{PK: "v1##k", Operation: "i", Jobs: true, Due: time.Now().Add(time.Hour)}}
		if err := errors.Join(clients{env: env}.tickets("https://sqs.us-east-1.amazonaws.com/1/tickets", role, slog.New(slog.DiscardHandler)).Put(t.Context(), later)...); err == nil {
			t.Errorf("with the role %q a ticket is put", role)
		}
	}
	slices.Sort(got)
	want := []string{
		"/ Action=Publish %3Anews", "/2015-03-31/functions/indexer:live/invocations", "/2015-03-31/functions/packer:live/invocations durable",
		`AWSEvents.PutEvents "default" "rides"`, "AWSStepFunctions.DescribeStateMachine stateMachine:ship", "AmazonSQS.GetQueueAttributes", // whose answer a schedule needs
		"AmazonSQS.SendMessageBatch", "AmazonSQS.SendMessageBatch receipts.fifo",
	}
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// A client gives up soon, and asks AWS if no endpoint is set.
func TestClientsAreQuick(t *testing.T) {
	t.Parallel()
	if q := quick(); q.GetTimeout() != 3*time.Second || q.GetDialer().Timeout != time.Second {
		t.Errorf("it waits for %v, for a connection for %v", q.GetTimeout(), q.GetDialer().Timeout)
	}
	c := clients{env: newEnvironment([]string{"AWS_ENDPOINT_URL_SQS=http://127.0.0.1:1"})}
	if got := c.sns().Options().BaseEndpoint; got != nil {
		t.Errorf("SNS is at %q", *got)
	}
	if got := c.sqs().Options().BaseEndpoint; aws.ToString(got) != "http://127.0.0.1:1" {
		t.Errorf("SQS is at %v", got)
	}
}

// Each client of the worker uses the kind of endpoint that the environment asks for.
func TestClientsUseTheEndpointsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	c := clients{env: newEnvironment([]string{"AWS_USE_FIPS_ENDPOINT=true", "AWS_USE_DUALSTACK_ENDPOINT=true"})}
	for name, got := range map[string]any{
		"dynamodb": c.dynamoDB().Options().EndpointOptions, "sqs": c.sqs().Options().EndpointOptions, "sns": c.sns().Options().EndpointOptions,
		"events": c.eventBridge().Options().EndpointOptions, "states": c.states().Options().EndpointOptions,
		"lambda": c.lambda().Options().EndpointOptions, "resume": c.resume().Options().EndpointOptions, "scheduler": c.scheduler().Options().EndpointOptions,
	} {
		if is := fmt.Sprintf("%+v", got); !strings.Contains(is, fmt.Sprintf("UseFIPSEndpoint:%d", aws.FIPSEndpointStateEnabled)) ||
			!strings.Contains(is, fmt.Sprintf("UseDualStackEndpoint:%d", aws.DualStackEndpointStateEnabled)) {
			t.Errorf("%s: %s, want both enabled", name, is)
		}
	}
}

// The worker opens sealed args, and seals none.
func TestWorkerSealsNothing(t *testing.T) {
	t.Parallel()
	env := newEnvironment([]string{"SAMEKEY_KMS_KEYS=a"})
	sealer := env.sealer(clients{env: env}, func(func(string) aws.Config, func(string) string) (seal.Provider, error) {
		return seal.NewStatic("a", map[string][]byte{"a": make([]byte, 32)})
	}, nil)
	if key, err := sealer.Key(t.Context()); key != nil || err != nil {
		t.Errorf("it has the key %v, %v for new records", key, err)
	}
}

// Whatever takes jobs may be sent to, is in the list that a wrong sink is answered with,
// and is on the page.
func TestServicesOfSinks(t *testing.T) {
	t.Parallel()
	var actions []string
	page, err := os.ReadFile("../../../docs/operate/deploying.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range targets {
		for action := range strings.FieldsSeq(s.actions) {
			actions = append(actions, action)
			_, verb, _ := strings.Cut(action, ":")
			if row := regexp.MustCompile("(?m)^\\| `SinksPolicy` .*`" + verb + "`").Find(page); row == nil {
				t.Errorf("docs/operate/deploying.md doesn't say that SinksPolicy allows %s", verb)
			}
		}
		if form := "KIND=" + s.name + ":" + s.address; !strings.Contains(sinksExample, form) {
			t.Errorf("%s is not in %q", form, sinksExample)
		}
	}
	_, policy, _ := strings.Cut(deploy.Nested(), "\n  SinksPolicy:\n")
	policy, _, _ = strings.Cut(policy, "\n\n")
	var allowed []string
	for _, m := range regexp.MustCompile(`(?m)^ +- (\w+:\w+)$`).FindAllStringSubmatch(policy, -1) {
		allowed = append(allowed, m[1])
	}
	slices.Sort(actions)
	actions = slices.Compact(actions) // a function's, durable or not
	if diff := cmp.Diff(actions, allowed); diff != "" {
		t.Errorf("SinksPolicy (-targets +allowed):\n%s", diff)
	}
}

// The program of module kms passes the variables and the client's settings on, and says
// which variable is wrong.
func TestKeysOfAnEnvironment(t *testing.T) {
	t.Parallel()
	const name, value = "SAMEKEY_KMS_KEYS", "arn:aws:kms:us-east-1:1:key/a"
	asked := 0
	keys := func(err error) Keys {
		return func(sdk func(string) aws.Config, getenv func(string) string) (seal.Provider, error) {
			asked++
			if cfg := sdk("KMS"); cfg.Region != "us-east-1" || cfg.HTTPClient == nil || aws.ToString(cfg.BaseEndpoint) != "http://127.0.0.1:1" {
				t.Errorf("the client's settings are %+v", cfg)
			}
			if getenv(name) != value || getenv("IDEM_TABLE") != "records" {
				t.Errorf("the variables are %q and %q", getenv(name), getenv("IDEM_TABLE"))
			}
			if err != nil {
				return nil, err
			}
			return seal.NewStatic("a", map[string][]byte{"a": make([]byte, 32)})
		}
	}
	with := environ(map[string]string{name: value, "AWS_ENDPOINT_URL_KMS": "http://127.0.0.1:1"})
	if w, err := build(with, keys(nil), Settings{}); w == nil || err != nil || asked != 1 {
		t.Errorf("got %v, %v after %d calls", w, err, asked)
	}
	if w, err := build(with, keys(errors.New(name+" is odd")), Settings{}); w != nil || err == nil || err.Error() != name+" is odd" {
		t.Errorf("got %v, %v", w, err)
	}
	if w, err := build(environ(nil), keys(nil), Settings{}); w == nil || err != nil || asked != 2 {
		t.Errorf("without the variable, got %v, %v after %d calls", w, err, asked)
	}
}

// The comments of the programs list the variables, and there are no others.
func TestVariablesAreDocumented(t *testing.T) {
	t.Parallel()
	var source []byte
	for _, program := range []string{"../../../cmd/samekey-worker/main.go", "../../../kms/cmd/samekey-worker/main.go"} {
		text, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(SAMEKEY_\w+) `).FindAllSubmatch(source, -1) {
		listed = append(listed, string(m[1]))
	}
	slices.Sort(listed)
	if diff := cmp.Diff(variables, listed); diff != "" {
		t.Errorf("the program's variables and those of its comment (-program +comment):\n%s", diff)
	}
	page, err := os.ReadFile("../../../docs/operate/background.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range variables {
		if !strings.Contains(string(page), "\n| `"+name+"` |") {
			t.Errorf("docs/operate/background.md doesn't list %s", name)
		}
	}
	for name := range sound() {
		if strings.HasPrefix(name, "SAMEKEY_") && !slices.Contains(slices.Concat(variables, others), name) {
			t.Errorf("%s is no variable", name)
		}
	}
}
