package lambdarun

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var bootstrap = filepath.Join(os.TempDir(), "unset")

func TestMain(m *testing.M) {
	if os.Getenv("LAMBDARUN_TEST_PARENT") != "" {
		parentMain()
		return
	}
	dir, err := os.MkdirTemp("", "lambdarun")
	if err != nil {
		panic(err)
	}
	bootstrap = filepath.Join(dir, "bootstrap")
	if err := BuildBootstrap(context.Background(), "./testdata/bootstrap", bootstrap); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

type testEvent struct {
	Op    string `json:"op"`
	Value string `json:"value,omitempty"`
	URL   string `json:"url,omitempty"`
	N     int    `json:"n,omitempty"`
}

type testReply struct {
	PID        int      `json:"pid"`
	Count      int      `json:"count"`
	Value      string   `json:"value"`
	Env        []string `json:"env"`
	Dir        string   `json:"dir"`
	RequestID  string   `json:"requestId"`
	ARN        string   `json:"arn"`
	TraceID    string   `json:"traceId"`
	DeadlineMS int64    `json:"deadlineMs"`
	Tenant     string   `json:"tenant"`
}

// start returns the test bootstrap as a function with a timeout that no test
// reaches unless it means to.
func start(t *testing.T, change func(*Config)) *Function {
	t.Helper()
	cfg := Config{Name: "test", Binary: bootstrap, Timeout: 5 * time.Minute}
	if change != nil {
		change(&cfg)
	}
	f, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func invoke(ctx context.Context, inv Invoker, ev testEvent) (testReply, error) {
	payload, err := json.Marshal(ev)
	if err != nil {
		return testReply{}, err
	}
	out, err := inv.Invoke(ctx, payload)
	if err != nil {
		return testReply{}, err
	}
	var r testReply
	if err := json.Unmarshal(out, &r); err != nil {
		return testReply{}, fmt.Errorf("%w in %q", err, out)
	}
	return r, nil
}

func mustInvoke(t *testing.T, inv Invoker, ev testEvent) testReply {
	t.Helper()
	r, err := invoke(t.Context(), inv, ev)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// background is an invocation somebody waits for elsewhere.
type background struct {
	reply testReply
	err   error
	done  chan struct{}
}

func invokeInBackground(ctx context.Context, inv Invoker, ev testEvent) *background {
	b := &background{done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.reply, b.err = invoke(ctx, inv, ev)
	}()
	return b
}

// alive asks the system, not the function.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	_ = p.Release()
	return err == nil
}

// parentMain is the program that TestParentDeath kills: it gets a process into
// the middle of an invocation and says so.
func parentMain() {
	f, err := Start(context.Background(), Config{Binary: os.Getenv("LAMBDARUN_TEST_PARENT"), Stdout: os.Stdout, Timeout: 5 * time.Minute})
	if err != nil {
		panic(err)
	}
	if _, err := f.Invoke(context.Background(), []byte(`{"op":"print","value":"ready"}`)); err != nil {
		panic(err)
	}
	b := invokeInBackground(context.Background(), f, testEvent{Op: "hang", URL: os.Getenv("LAMBDARUN_TEST_GATE")})
	<-b.done
	runtime.KeepAlive(f)
	panic("unreachable: the invocation hangs")
}
