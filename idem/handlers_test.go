package idem_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// The store of somebody else doesn't know the handlers of its process. One engine still
// knows its own.
func TestTwoUnnamedHandlersOfOneEngine(t *testing.T) {
	t.Parallel()
	e := idem.New(struct{ store.Store }{&idem.MemoryStore{}}, callertest.Anybody)
	if err := e.AddOperation("Direct", ""); err != nil {
		t.Fatal(err)
	}
	if err := e.AddOperation("Direct", ""); err == nil {
		t.Error("two handlers without a name share their keys")
	}
}

func TestHandlersNeedNames(t *testing.T) {
	t.Parallel()
	resumable := idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Resumable, o.Function = true, "f" })
	plain := idem.New(&idem.MemoryStore{}, callertest.Anybody)
	for i, tc := range []struct {
		e          *idem.Engine
		name, want string
	}{
		{plain, "", ""}, {plain, "", ""}, {resumable, "a", ""}, {resumable, "b", ""}, {resumable, "", "no name"}, {resumable, "a", `"a"`}, {resumable, "b", `"b"`}, {plain, "\xff", "not UTF-8"},
	} {
		if err := tc.e.AddHandler(tc.name); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("handler %d: %v, want %q", i, err, tc.want)
		}
	}
	var mem idem.MemoryStore
	first, second := idem.New(&mem, callertest.Anybody), idem.New(&mem, callertest.Anybody)
	other := idem.New(&mem, callertest.Anybody, func(o *idem.Options) { o.Namespace = "other" })
	for i, tc := range []struct {
		e                *idem.Engine
		kind, name, want string
	}{
		{first, "Direct", "a", ""},
		{first, "Direct", "b", ""},
		{first, "SQS", "a", ""},
		{second, "Direct", "a", ""},
		{first, "Direct", "a", `"a"`},
		{first, "Direct", "b", `"b"`},
		{first, "Direct", "", ""},
		{first, "SQS", "", ""},
		{other, "Direct", "", ""},
		{second, "Direct", "", "without a name"},
		{first, "Direct", "", "without a name"},
	} {
		if err := tc.e.AddOperation(tc.kind, tc.name); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("operation %d: %v, want %q", i, err, tc.want)
		}
	}
}

// A source that delivers after the key is forgotten is worth a warning, unless the program
// has thought of it.
func TestSourceThatKeepsForLonger(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		keeps time.Duration
		opt   func(*idem.Options)
		warns bool
	}{
		"longer":       {3*time.Hour + 1, func(*idem.Options) {}, true},
		"as long":      {3 * time.Hour, func(*idem.Options) {}, false},
		"unknown":      {0, func(*idem.Options) {}, false},
		"not followed": {4 * time.Hour, func(o *idem.Options) { o.Mode = idem.ModeOff }, false},
	} {
		var log bytes.Buffer
		idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) {
			o.Retention, o.Logger = 3*time.Hour, slog.New(slog.NewTextHandler(&log, nil))
		}, tc.opt).AddSource("orders", tc.keeps)
		if got := strings.Contains(log.String(), "source=orders"); got != tc.warns {
			t.Errorf("%s: %q", name, log.String())
		}
	}
}

func TestCheckRoute(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opt     func(*idem.Options)
		pattern string
		want    string
	}{
		"a keyed method":        {callertest.Anybody, "POST /orders/{id}", ""},
		"any method":            {callertest.Anybody, "/orders/{id}", ""},
		"a tab":                 {callertest.Anybody, "GET\t/orders", "takes keys on POST, PATCH only: add GET"},
		"a method without keys": {callertest.Anybody, "GET /orders", "takes keys on POST, PATCH only: add GET"},
	} {
		err := idem.New(&idem.MemoryStore{}, tc.opt).CheckRoute(tc.pattern)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

// Outside of Lambda each program would be "", so another one's 404 could end the
// operation.
func TestResumableNeedsAFunction(t *testing.T) {
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "Options.Function") {
			t.Errorf("New panicked with %s, want the cure", v)
		}
	}()
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "")
	idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Resumable = true })
}

// On Lambda the function's name is the default, without any setting.
func TestFunctionIsNamedByItsPlatform(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "orders")
	var st idem.MemoryStore
	if _, err := do(t, idem.New(&st, callertest.Anybody), func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil }); err != nil {
		t.Fatal(err)
	}
	for _, r := range st.Records() {
		if r.Handler != (store.HandlerID{Function: "orders"}) {
			t.Errorf("the record names the %v", r.Handler)
		}
	}
}
