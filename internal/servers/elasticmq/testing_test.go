package elasticmq

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/serverstest"
)

func TestStartSkipsOrFails(t *testing.T) {
	missing := fmt.Errorf("%w: java", ErrUnavailable)
	other := errors.New("elasticmq: a remote host")
	stuck := errors.New("it doesn't end")
	for _, tt := range []struct {
		name, require   string
		err, closing    error
		skipped, failed string
	}{
		{name: "nothing to be had", err: missing, skipped: missing.Error()},
		{name: "nothing to be had, and said not to matter", require: "0", err: missing, skipped: missing.Error()},
		{name: "nothing to be had, but required", require: "1", err: missing, failed: missing.Error()},
		{name: "another error", err: other, failed: other.Error()},
		{name: "no error", require: "1"},
		{name: "an error at the test's end", closing: stuck, failed: "elasticmq: ending ElasticMQ at http://127.0.0.1:1: " + stuck.Error()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(envRequire, tt.require)
			t.Setenv(envRequireAll, "")
			ended := 0
			got := serverstest.RunTest(func(t *serverstest.TB) {
				startWith(t, new(servers.Skips), func(context.Context) (*Server, error) {
					if tt.err != nil {
						return nil, tt.err
					}
					return &Server{Endpoint: "http://127.0.0.1:1", handle: servers.Handle{Stop: func() error { ended++; return tt.closing }}}, nil
				})
			})
			if got.SkippedWith != tt.skipped || got.FailedWith != tt.failed {
				t.Errorf("got skipped %q, failed %q; want skipped %q, failed %q", got.SkippedWith, got.FailedWith, tt.skipped, tt.failed)
			}
			if want := tt.err == nil; (ended == 1) != want {
				t.Errorf("ended %d servers", ended)
			}
		})
	}
}
