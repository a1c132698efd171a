package stack

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// A setting that changes nothing says so: somebody waits for it.
func TestOverridesThatChangeNothingAreTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := func(name, text string) sam.Function {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return sam.Function{ID: name, Bootstrap: path}
	}
	with := func(f sam.Function, e sam.Event) sam.Function {
		f.Events = []sam.Event{e}
		return f
	}
	nothing := program("nothing", "\x7fELF…IDEM_TABLE…")
	all := Overrides{LeaseMargin: new(time.Second), Grace: new(time.Second), StreamWindow: new(time.Second), SweepEvery: new(time.Second)}
	for name, tt := range map[string]struct {
		overrides Overrides
		defs      []sam.Function
		want      []string
	}{
		"none are set":           {Overrides{}, []sam.Function{nothing}, nil},
		"nobody minds them":      {all, []sam.Function{nothing}, []string{"LOCAL_LEASE_MARGIN", "LOCAL_GRACE", "LOCAL_STREAM_WINDOW", "LOCAL_SWEEP_EVERY"}},
		"one program reads each": {all, []sam.Function{nothing, program("grace", "…SAMEKEY_GRACE…"), program("margin", "…SAMEKEY_LEASE_MARGIN…")}, []string{"LOCAL_STREAM_WINDOW", "LOCAL_SWEEP_EVERY"}},
		"a stream and a schedule": {
			Overrides{StreamWindow: all.StreamWindow, SweepEvery: all.SweepEvery},
			[]sam.Function{with(nothing, sam.Event{Stream: &sam.StreamEvent{}}), with(nothing, sam.Event{Schedule: &sam.ScheduleEvent{}})},
			nil,
		},
	} {
		log := &localtest.Buffer{}
		s := &Stack{opts: Options{Overrides: tt.overrides}, log: slog.New(slog.NewTextHandler(log, nil))}
		s.tellOverrides(t.Context(), tt.defs)
		var got []string
		for line := range strings.Lines(log.String()) {
			_, said, _ := strings.Cut(line, `level=WARN msg="`)
			setting, _, _ := strings.Cut(said, " has no effect: ")
			got = append(got, setting)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: told of %v, want %v", name, got, tt.want)
		}
	}
}
