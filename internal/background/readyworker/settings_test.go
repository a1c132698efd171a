package readyworker

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/trace"
	"github.com/samekey/samekey/seal"
)

// traced is a telemetry that counts deliveries.
type traced struct{ delivered *int }

func (t traced) Tracer() trace.Tracer { return tracer{} }
func (t traced) StreamHooks() stream.Hooks {
	return stream.Hooks{Delivered: func(context.Context, jobs.Delivery) { *t.delivered++ }}
}
func (t traced) StoreHooks() dynamo.Hooks { return dynamo.Hooks{} }

type tracer struct{ trace.Tracer }

// What a main of one's own sets is in the worker, beside what the environment says.
func TestSettingsOfAMain(t *testing.T) {
	t.Parallel()
	resume := func(context.Context, jobs.Ticket) error { return nil }
	own := jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return nil })
	keys, err := seal.NewStatic("a", map[string][]byte{"a": make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	ofEnvironment := []string{"refunds", "rides"}
	for name, tc := range map[string]struct {
		change    map[string]string
		own       Settings
		functions []string
		sinks     int
		wrong     string
	}{
		"nothing":                {nil, Settings{}, ofEnvironment, 7, ""},
		"a sink":                 {nil, Settings{Sinks: jobs.Route{"own": own}}, ofEnvironment, 8, ""},
		"a sink of a kind twice": {nil, Settings{Sinks: jobs.Route{"news": own}}, nil, 0, `SAMEKEY_SINKS has the kind "news" twice`},
		"a former name":          {nil, Settings{Former: map[string]string{"trips": "rides"}}, []string{"refunds", "rides", "trips"}, 7, ""},
		"a former name of none":  {nil, Settings{Former: map[string]string{"trips": "rides:live"}}, nil, 0, `SAMEKEY_FUNCTIONS lacks "rides:live"`},
		"resumed here":           {nil, Settings{Resume: map[string]func(context.Context, jobs.Ticket) error{"own": resume}, Former: map[string]string{"old": "own"}}, []string{"old", "own", "refunds", "rides"}, 7, ""},
		"only resumed here":      {map[string]string{"SAMEKEY_FUNCTIONS": ""}, Settings{Resume: map[string]func(context.Context, jobs.Ticket) error{"own": resume}}, []string{"own"}, 7, ""},
		"keys":                   {nil, Settings{Keys: keys}, ofEnvironment, 7, ""},
		"keys twice":             {map[string]string{"SAMEKEY_KMS_KEYS": "a"}, Settings{Keys: keys}, nil, 0, "SAMEKEY_KMS_KEYS is set, and the program has Options.Keys"},
	} {
		var got worker.Options
		_, err := New(environ(tc.change), nil, tc.own, func(o *worker.Options) { got = *o })
		if tc.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("%s: got the error %v, want %q", name, err, tc.wrong)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: got the error %v, want none", name, err)
			continue
		}
		functions, _ := got.Functions.(completer.Functions)
		if diff := cmp.Diff(tc.functions, slices.Sorted(maps.Keys(functions))); diff != "" {
			t.Errorf("%s: functions (-want +got):\n%s", name, diff)
		}
		if n := len(got.Sink.(jobs.Route)); n != tc.sinks {
			t.Errorf("%s: got %d kinds with a sink, want %d", name, n, tc.sinks)
		}
		if got.Tracer != nil {
			t.Errorf("%s: got a tracer, want none", name)
		}
	}
}

func TestTelemetryOfAMain(t *testing.T) {
	t.Parallel()
	delivered := 0
	var got worker.Options
	if _, err := New(environ(nil), nil, Settings{Telemetry: traced{&delivered}}, func(o *worker.Options) { got = *o }); err != nil {
		t.Fatal(err)
	}
	got.Hooks.Delivered(t.Context(), jobs.Delivery{})
	if delivered != 1 || got.Tracer != (tracer{}) {
		t.Errorf("got %d deliveries counted and the tracer %v, want 1 and its own", delivered, got.Tracer)
	}
}

// FairBy names the message group in standard queues and topics only, and WithoutTenant the
// kinds that are invoked for no tenant.
func TestSinksAsAMainSays(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	said := make(map[string]string)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		is := string(body)
		for _, text := range []string{"acme", "group-1"} {
			if strings.Contains(is, text) {
				is = text
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			said[r.Header.Get("X-Amz-Target")+r.URL.Path] += is + r.Header.Get("X-Amz-Tenant-Id") + " "
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer service.Close()
	env := newEnvironment(environ(map[string]string{"AWS_ENDPOINT_URL": service.URL, "SAMEKEY_SINKS": "standard=sqs:http://q/1/a,fifo=sqs:http://q/1/a.fifo," +
		"topic=sns:arn:aws:sns:us-east-1:1:news,isolated=lambda:isolated,shared=lambda:shared,pack=durable:packer:live"}))
	route := env.sinks(clients{env, Settings{FairBy: func(d jobs.Delivery) string { return "acme" }, WithoutTenant: []string{"shared", "pack"}}})
	got := make(map[string]string)
	for kind := range route {
		clear(said)
		err := errors.Join(route.Deliver(t.Context(), []jobs.Delivery{{JobID: "1", Kind: kind, Args: []byte("{}"), Group: "group-1", Tenant: "jane"}})...)
		for _, is := range said {
			got[kind] = is
		}
		if err == nil {
			t.Errorf("%s is delivered, want a refusal", kind)
		}
	}
	for kind, want := range map[string]string{"standard": "acme", "fifo": "group-1", "topic": "acme", "isolated": "jane", "shared": "", "pack": ""} {
		if is := got[kind]; !strings.Contains(is, want) || want == "" && strings.Contains(is, "jane") {
			t.Errorf("%s: sent with %q, want %q", kind, is, want)
		}
	}
}
