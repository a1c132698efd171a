package idem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// observed is an engine that observes, and hears what requests would have got.
type observed struct {
	mem  idem.MemoryStore
	told []error
}

func (o *observed) engine(s store.Store, opts ...func(*idem.Options)) *idem.Engine {
	return idem.New(s, append(opts, func(opt *idem.Options) {
		opt.Mode = idem.ModeObserve
		opt.Hooks.Observed = func(_ context.Context, ev idem.Event) { o.told = append(o.told, ev.Err) }
	})...)
}

// A request is observed whatever would have refused it, and runs once.
func TestObserveOfARefusal(t *testing.T) {
	t.Parallel()
	unread := func(o *idem.Options) {
		o.Fingerprint.Func, o.Fingerprint.FuncName = func(*idem.Request) ([]byte, error) { return nil, errDown }, "f"
		o.Fingerprint.Known = []idem.Fingerprint{{}}
	}
	nobody := request
	nobody.Identity = idem.Identity{}
	for name, tt := range map[string]struct {
		r    idem.Request
		opt  func(*idem.Options)
		left time.Duration
		want error
	}{
		"nobody has sent it":         {nobody, asIs, time.Minute, idem.ErrScope},
		"there is no time":           {request, asIs, time.Millisecond, idem.ErrNoTime},
		"its data can't be compared": {request, unread, time.Minute, errDown},
	} {
		var o observed
		runs := 0
		ctx, cancel := context.WithTimeout(t.Context(), tt.left)
		defer cancel()
		res, err := o.engine(&o.mem, tt.opt).Do(ctx, tt.r, func(ctx context.Context) (idem.Response, error) { runs++; return answers(201)(ctx) })
		if err != nil || res.Status != 201 || runs != 1 || len(o.told) != 1 || !errors.Is(o.told[0], tt.want) || len(o.mem.Records()) != 0 {
			t.Errorf("%s: %+v, %v after %d runs, told %v, %d records", name, res, err, runs, o.told, len(o.mem.Records()))
		}
	}
}

// An observed answer is remembered if it would have been stored: so the next request hears
// that it would have been replayed, or nothing.
func TestObserveRemembersAnswers(t *testing.T) {
	t.Parallel()
	only200 := func(o *idem.Options) { o.Stored = func(status int) bool { return status == 200 } }
	all := func(o *idem.Options) { o.Stored = func(int) bool { return true } }
	conflict := func(v idemtest.Verb) idemtest.Plan { return idemtest.At(v, 1, idemtest.Fault{Err: idem.ErrConflict}) }
	for name, tt := range map[string]struct {
		opt   func(*idem.Options)
		plan  idemtest.Plan
		fn    func(context.Context) (idem.Response, error)
		stays bool
	}{
		"an answer":                        {asIs, nil, answers(201), true},
		"an answer without a status":       {only200, nil, answers(0), true},
		"an answer that isn't stored":      {asIs, nil, answers(409), false},
		"no answer":                        {all, nil, func(context.Context) (idem.Response, error) { return idem.Response{}, errDown }, false},
		"an answer that can't be sent":     {all, nil, answers(1000), false},
		"an answer, its claim conflicts":   {asIs, conflict(idemtest.Claim), answers(201), true},
		"an answer, its storing conflicts": {asIs, conflict(idemtest.Commit), answers(201), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o observed
			_, _ = o.engine(idemtest.Faulty(&o.mem, tt.plan), tt.opt).Do(t.Context(), request, tt.fn)
			if o.told != nil {
				t.Errorf("the first request is told %v", o.told)
			}
			_, _ = o.engine(&o.mem, tt.opt).Do(t.Context(), request, tt.fn)
			if stays := len(o.told) == 1 && errors.Is(o.told[0], idem.ErrReplay); stays != tt.stays || !stays && o.told != nil {
				t.Errorf("the second request is told %v; the first one's answer stays: want %t", o.told, tt.stays)
			}
		})
	}
}

// What an observed handler answers reaches its client as it is; the record has what a replay
// may have.
func TestObserveStoresACleanAnswer(t *testing.T) {
	t.Parallel()
	var o observed
	header := http.Header{"Location": {"/1"}, "X-Split": {"a\nb"}}
	res, err := o.engine(&o.mem, func(o *idem.Options) { o.StoreHeaders = []string{"X-Split"} }).Do(t.Context(), request, func(context.Context) (idem.Response, error) {
		return idem.Response{Header: header}, nil
	})
	if diff := cmp.Diff(header, res.Header); diff != "" || err != nil || res.Status != 0 {
		t.Errorf("%+v, %v (-want +got):\n%s", res, err, diff)
	}
	if got := one(&o.mem).Response; got.Status != 200 || len(got.Header) != 1 || got.Header.Get("Location") != "/1" {
		t.Errorf("the record has %+v", got)
	}
}

// A wrapper in a wrapper observes a request once, and a key in quotes may have a space.
func TestObserveInsideAndSpaces(t *testing.T) {
	t.Parallel()
	var o observed
	e := o.engine(&o.mem)
	r := keyed(`"with a space"`)
	runs := 0
	res, err := e.Serve(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
		res, err := e.Serve(ctx, r, func(context.Context) (idem.Response, error) { runs++; return idem.Response{Status: 201}, nil })
		return res.Response, err
	})
	if err != nil || res.Status != 201 || runs != 1 || o.told != nil || len(o.mem.Records()) != 1 {
		t.Errorf("%+v, %v after %d runs, told %v, %d records", res, err, runs, o.told, len(o.mem.Records()))
	}
}

// An observed retry continues an abandoned operation, and its handler learns that.
func TestObserveContinues(t *testing.T) {
	t.Parallel()
	var o observed
	clock := idemtest.NewClock()
	now := func(o *idem.Options) { o.Now = clock.Now }
	for i := range 2 {
		st := idemtest.Faulty(&o.mem, nil)
		_, err := o.engine(st, now).Do(t.Context(), request, func(ctx context.Context) (idem.Response, error) {
			if op, _ := idem.FromContext(ctx); op.Resumed() != (i == 1) {
				t.Errorf("attempt %d: resumed: %t", i, op.Resumed())
			}
			st.Crash()
			return idem.Response{Status: 201}, nil
		})
		if err != nil || o.told != nil {
			t.Errorf("attempt %d: %v, told %v", i, err, o.told)
		}
		clock.Advance(storetest.LeaseOver)
	}
}
