package dynamo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/dynamo"
)

func TestNewRefusesWhatCantWork(t *testing.T) {
	t.Parallel()
	client := fakeAPI{}
	for name, tt := range map[string]struct {
		api   dynamo.API
		table string
		opt   func(*dynamo.Options)
		want  string
	}{
		"no client":           {nil, "table", nil, "api is nil"},
		"no table":            {client, "", nil, "table is empty"},
		"a table of one byte": {client, "t", nil, "is not the name"},
		"a URL":               {client, "https://example.com/table", nil, "is not the name"},
		"inline too large":    {client, "table", func(o *dynamo.Options) { o.Inline = 64<<10 + 1 }, "Options.Inline"},
		"inline of nothing":   {client, "table", func(o *dynamo.Options) { o.Inline = 0 }, "Options.Inline"},
		"inline negative":     {client, "table", func(o *dynamo.Options) { o.Inline = -1 }, "Options.Inline"},
		"requests too short":  {client, "table", func(o *dynamo.Options) { o.KeepRequests = 24*time.Hour - 1 }, "Options.KeepRequests is 23h59m59.999999999s; at least 24h0m0s"},
		"requests negative":   {client, "table", func(o *dynamo.Options) { o.KeepRequests = -time.Second }, "Options.KeepRequests"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := tt.opt
			if opt == nil {
				opt = func(*dynamo.Options) {}
			}
			if _, err := dynamo.New(tt.api, tt.table, opt); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	for _, limit := range []func(*dynamo.Options){
		func(o *dynamo.Options) { o.KeepRequests = 24 * time.Hour }, func(o *dynamo.Options) { o.Inline = 1 }, func(o *dynamo.Options) { o.Inline = 64 << 10 },
	} {
		if _, err := dynamo.New(client, "table", limit); err != nil {
			t.Error(err)
		}
	}
	for _, table := range []string{"idempotency", "a.b-c_D1", "arn:aws:dynamodb:eu-central-1:123456789012:table/idempotency"} {
		if _, err := dynamo.New(client, table); err != nil {
			t.Errorf("%s: %v", table, err)
		}
	}
}

type fakeAPI struct{ dynamo.API }
