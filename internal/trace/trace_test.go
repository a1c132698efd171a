package trace_test

import (
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/trace"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestSound(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, want trace.Context }{
		"whole":             {trace.Context{Parent: parent, State: "a=1,b=2"}, trace.Context{Parent: parent, State: "a=1,b=2"}},
		"no state":          {trace.Context{Parent: parent}, trace.Context{Parent: parent}},
		"none":              {},
		"capitals":          {trace.Context{Parent: strings.ToUpper(parent), State: "a=1"}, trace.Context{}},
		"too long":          {trace.Context{Parent: parent + "0"}, trace.Context{}},
		"another version":   {trace.Context{Parent: "cc" + parent[2:]}, trace.Context{}},
		"another separator": {trace.Context{Parent: parent[:35] + "_" + parent[36:]}, trace.Context{}},
		"no text":           {trace.Context{Parent: parent, State: "a=\x00"}, trace.Context{Parent: parent}},
		"a letter":          {trace.Context{Parent: parent, State: "a=é"}, trace.Context{Parent: parent}},
		"a long state":      {trace.Context{Parent: parent, State: strings.Repeat("a", 513)}, trace.Context{Parent: parent}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.in.Sound(); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if got := trace.Parse(tt.in.String()); got != tt.want {
				t.Errorf("there and back: %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestSampled(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]bool{"00": false, "01": true, "02": false, "03": true, "0a": false, "0b": true} {
		if got := (trace.Context{Parent: parent[:53] + flags}).Sampled(); got != want {
			t.Errorf("flags %s: got %v", flags, got)
		}
	}
	if (trace.Context{}).Sampled() {
		t.Error("no context is sampled")
	}
}
