package quota_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/quota"
)

// desk asks buckets at a time of its own.
type desk struct {
	*testing.T
	b   *quota.Buckets
	now time.Time
}

func newDesk(t *testing.T, each quota.Limits, optFns ...func(*quota.Options)) *desk {
	t.Helper()
	d := &desk{T: t, now: time.Now()}
	d.b = quota.New(each, append([]func(*quota.Options){func(o *quota.Options) { o.Now = func() time.Time { return d.now } }}, optFns...)...)
	return d
}

// begin asks for a place of jane's.
func (d *desk) begin(edits ...func(*idem.QuotaRequest)) (end func(idem.QuotaUse), wait time.Duration) {
	d.Helper()
	r := idem.QuotaRequest{Caller: "jane", Route: "POST /charges", Kept: 24 * time.Hour}
	for _, edit := range edits {
		edit(&r)
	}
	end, wait, err := d.b.Begin(d.Context(), r)
	if err != nil || (end == nil) != (wait > 0) {
		d.Fatalf("got a wait of %v, end %v, %v", wait, end != nil, err)
	}
	return end, wait
}

// runs is a whole operation; it reports whether it was allowed.
func (d *desk) runs(edits ...func(*idem.QuotaRequest)) bool {
	d.Helper()
	end, wait := d.begin(edits...)
	if wait > 0 {
		return false
	}
	end(idem.QuotaUse{New: true, Bytes: 1000})
	return true
}

func as(caller string) func(*idem.QuotaRequest) {
	return func(r *idem.QuotaRequest) { r.Caller = caller }
}

func on(route string) func(*idem.QuotaRequest) { return func(r *idem.QuotaRequest) { r.Route = route } }

func TestRate(t *testing.T) {
	t.Parallel()
	d := newDesk(t, quota.Limits{PerMinute: 60, Burst: 10})
	for range 10 {
		if !d.runs() {
			t.Fatal("refused within the burst")
		}
	}
	if _, wait := d.begin(); wait != time.Second {
		t.Errorf("a wait of %v, want 1s", wait)
	}
	allowed := 0
	for range 6000 { // 100 a second
		d.now = d.now.Add(10 * time.Millisecond)
		if d.runs() {
			allowed++
		}
	}
	if allowed != 60 {
		t.Errorf("%d in the minute after the burst, want 60", allowed)
	}
	d.now = d.now.Add(time.Hour)
	for i := range 11 {
		if got := d.runs(); got != (i < 10) {
			t.Errorf("after an hour, number %d: %v", i, got)
		}
	}
}

// In no minute begins more than the rate and the burst, whatever the pace.
func TestRateAtAnyPace(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	d := newDesk(t, quota.Limits{PerMinute: 50})
	var allowed []time.Time
	for range 20_000 {
		d.now = d.now.Add(time.Duration(random.Int64N(int64(500 * time.Millisecond))))
		end, wait := d.begin()
		switch {
		case wait > time.Minute:
			t.Fatalf("a wait of %v", wait)
		case wait > 0 && random.IntN(4) == 0:
			d.now = d.now.Add(wait)
			if !d.runs() {
				t.Fatalf("refused after the wait of %v", wait)
			}
			allowed = append(allowed, d.now)
		case wait == 0:
			end(idem.QuotaUse{New: true})
			allowed = append(allowed, d.now)
		}
	}
	for i, first := range allowed {
		n := 0
		for _, at := range allowed[i:min(i+120, len(allowed))] {
			if at.Before(first.Add(time.Minute)) {
				n++
			}
		}
		if n > 101 {
			t.Fatalf("%d in a minute, want at most a burst of 50 and 50 more", n)
		}
	}
}

// A known key gives its place back.
func TestKnownKeysTakeNoPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t, quota.Limits{PerMinute: 1, Bytes: 2000})
	for range 100 {
		end, wait := d.begin()
		if wait > 0 {
			t.Fatal("refused")
		}
		end(idem.QuotaUse{Bytes: 1 << 20}) // those that its record has already
	}
	if !d.runs() || d.runs() {
		t.Error("want one place")
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	d := newDesk(t, quota.Limits{Open: 2})
	first, _ := d.begin()
	second, _ := d.begin()
	if _, wait := d.begin(); wait != time.Second {
		t.Errorf("the third: a wait of %v, want 1s", wait)
	}
	if !d.runs(as("omar")) {
		t.Error("another caller was refused")
	}
	first(idem.QuotaUse{New: true})
	if !d.runs() {
		t.Error("refused, though one has ended")
	}
	second(idem.QuotaUse{})
}

// The smallest limits are limits.
func TestLimitsOfOne(t *testing.T) {
	t.Parallel()
	for limit, each := range map[string]quota.Limits{"Open": {Open: 1}, "PerMinute": {PerMinute: 1}, "Bytes": {Bytes: 1}} {
		d := newDesk(t, each)
		end, _ := d.begin()
		if limit != "Open" {
			end(idem.QuotaUse{New: true, Bytes: 1})
		}
		if d.runs() {
			t.Errorf("%s: a second one", limit)
		}
	}
}

// Whatever comes when, no more than Bytes are in the table, and the operations that
// run at once.
func TestBytesAtRest(t *testing.T) {
	t.Parallel()
	const limit, size, kept = 1 << 20, 10_000, 24 * time.Hour
	d := newDesk(t, quota.Limits{Bytes: limit})
	var records []time.Time // their ends
	most, total := 0, 0
	for range 60 * 72 {
		d.now = d.now.Add(time.Minute)
		for len(records) > 0 && !records[0].After(d.now) {
			records = records[1:]
		}
		for {
			end, wait := d.begin()
			if wait > 0 {
				if wait > kept {
					t.Fatalf("a wait of %v", wait)
				}
				break
			}
			end(idem.QuotaUse{New: true, Bytes: size})
			records = append(records, d.now.Add(kept))
			total++
		}
		most = max(most, len(records)*size)
	}
	if most > limit+size || most < limit*9/10 {
		t.Errorf("%d bytes at rest, want at most %d and not much less", most, limit)
	}
	if total < 3*limit/size/2 {
		t.Errorf("%d operations in 3 days: the bucket doesn't fill", total)
	}
}

// A large answer is a debt, which ends.
func TestBytesOfALargeAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t, quota.Limits{Bytes: 10_000})
	end, _ := d.begin()
	end(idem.QuotaUse{New: true, Bytes: 1 << 40})
	_, wait := d.begin()
	if wait < 24*time.Hour || wait > 4*24*time.Hour {
		t.Errorf("a wait of %v, want a few retentions", wait)
	}
	d.now = d.now.Add(wait)
	if !d.runs() {
		t.Error("refused after the wait")
	}
	if !d.runs(as("omar"), func(r *idem.QuotaRequest) { r.Bytes = 1 << 40 }) {
		t.Error("a full bucket refuses a request that is larger than it for ever")
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, quota.Limits{PerMinute: 3}, func(o *quota.Options) {
		o.Routes = map[string]quota.Limits{"POST /exports": {PerMinute: 1}}
	})
	if !d.runs(on("POST /exports")) || d.runs(on("POST /exports")) {
		t.Error("want one export")
	}
	if first, second, third := d.runs(), d.runs(), d.runs(); !first || !second || third {
		t.Error("want three operations in all: what the route refused takes nothing from the caller")
	}
	if !d.runs(as("omar"), on("POST /exports")) {
		t.Error("another caller's export was refused")
	}
}

// Options that an option function sets to zero have their defaults.
func TestZeroOptions(t *testing.T) {
	t.Parallel()
	if d := newDesk(t, quota.Limits{PerMinute: 1}, func(o *quota.Options) { *o = quota.Options{} }); !d.runs() {
		t.Error("refused")
	}
}

// Strangers don't fill the memory, and a caller who is forgotten is not refused.
func TestCallersAreBounded(t *testing.T) {
	t.Parallel()
	const callers = 10_000
	d := newDesk(t, quota.Limits{PerMinute: 1})
	d.runs(as("first"))
	held, _ := d.begin(as("second"))
	for i := range callers {
		if !d.runs(as(fmt.Sprint("stranger", i))) {
			t.Error("a new caller was refused")
		}
	}
	if d.runs(as(fmt.Sprint("stranger", callers-1))) || d.runs(as("stranger0")) {
		t.Error("a recent caller was forgotten")
	}
	if !d.runs(as("first")) {
		t.Error("a forgotten caller was refused")
	}
	held(idem.QuotaUse{}) // its buckets are forgotten
}

// Callers with names as long as a token's claims take no more memory than others.
func TestLongNamesTakeNoMemory(t *testing.T) {
	const callers, most = 10_000, 1500 // bytes for each
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	b := quota.New(quota.Limits{PerMinute: 60, Open: 2, Bytes: 1 << 20})
	for i := range 2 * callers {
		end, _, err := b.Begin(t.Context(), idem.QuotaRequest{Caller: strconv.Itoa(i) + strings.Repeat("x", 8000), Kept: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		end(idem.QuotaUse{New: true})
	}
	after := heap()
	each := (after - min(before, after)) / callers
	t.Logf("%d bytes for each caller", each)
	if each > most {
		t.Errorf("a caller takes %d bytes, want at most %d", each, most)
	}
	runtime.KeepAlive(b)
}

func TestAtOnce(t *testing.T) {
	t.Parallel()
	b := quota.New(quota.Limits{PerMinute: 100, Open: 1000, Bytes: 1 << 30})
	var wg sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for range 8 {
		wg.Go(func() {
			for range 100 {
				end, wait, err := b.Begin(context.Background(), idem.QuotaRequest{Caller: "jane", Kept: time.Hour})
				if err != nil {
					t.Error(err)
				}
				if wait == 0 {
					end(idem.QuotaUse{New: true})
					mu.Lock()
					allowed++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if allowed < 100 || allowed == 800 {
		t.Errorf("%d were allowed, want 100 and those of the time that has passed", allowed)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(){
		"negative":             func() { quota.New(quota.Limits{Bytes: -1}) },
		"a negative rate":      func() { quota.New(quota.Limits{PerMinute: -1}) },
		"a negative burst":     func() { quota.New(quota.Limits{PerMinute: 1, Burst: -1}) },
		"negative places":      func() { quota.New(quota.Limits{Open: -1}) },
		"a burst without rate": func() { quota.New(quota.Limits{Burst: 1}) },
		"a route's": func() {
			quota.New(quota.Limits{}, func(o *quota.Options) { o.Routes = map[string]quota.Limits{"r": {Open: -1}} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if v, _ := recover().(string); !strings.HasPrefix(v, "quota: New: ") {
					t.Errorf("recovered %q", v)
				}
			}()
			make()
		})
	}
}
