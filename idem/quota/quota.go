package quota

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/lru"
)

// Limits are the limits of one caller. Zero means no limit.
type Limits struct {
	// PerMinute is how many new operations may begin in a minute, on average.
	PerMinute int
	// Burst is how many new operations may begin at once. Default: PerMinute.
	Burst int
	// Open is how many new operations may run at once in this process. An attempt that
	// takes over an operation doesn't count. Each record of an event is an operation. A
	// Lambda function doesn't need Open if each process serves one request at a time.
	// Such a function's reserved concurrency limits all callers together.
	Open int
	// Bytes is how many bytes of records a caller may have in the table. The limit
	// counts the records that were written within the retention: by this process, or by
	// all processes if [Options.Shared] is set. The size of a record includes the
	// answer, and is measured before compression. At most half of Bytes may be written
	// in one burst. But an operation may begin if its request fits, because its answer
	// isn't known yet. So operations with large answers may write more than Bytes, or
	// more than its half in one burst. Then the caller waits longer.
	Bytes int64
}

const (
	// patience is the time limit of a call to Options.Shared.
	patience = time.Second
	// mostCallers is how many callers are remembered. Each route with limits adds room for
	// as many again. The caller who was away longest is forgotten first, and begins with
	// full buckets in this process when it returns. A caller takes about 1 KB.
	mostCallers = 10_000
)

// Options are the settings of [New].
type Options struct {
	// Routes maps the name of a route to additional limits for each caller on the route. A
	// request on the route counts twice: against these limits, and against the caller's
	// limits over all routes.
	Routes map[string]Limits
	// Shared stores the buckets of PerMinute and Bytes for all processes, so that a
	// caller's limits hold for any number of sandboxes. Open remains a limit of each
	// process. While Shared fails, each process uses its own buckets. Default: nil, so each
	// process has its own buckets.
	Shared Shared
	// Name is part of the names of the shared buckets. Programs on one table share their
	// buckets if their Names are equal. So do several Buckets of one program. Default: "".
	Name string
	// Now is the clock, for tests. Default: time.Now.
	Now func() time.Time
}

// Buckets is an [idem.Quota] with token buckets for each caller. Buckets is safe for
// concurrent use, also by several engines.
type Buckets struct {
	each Limits
	opt  Options

	mu    sync.Mutex
	known *lru.Map[name, *caller]
}

var _ idem.Quota = (*Buckets)(nil)

// name identifies the buckets of a caller, on one route with limits or over all routes.
// It holds only a hash of the caller's own name, because that name may be as long as a
// token.
type name struct {
	caller [sha256.Size]byte
	route  string
}

// New returns Buckets with the limits each: the limits of every caller, over all
// routes. New panics if a limit is negative, or if Burst is set without PerMinute.
func New(each Limits, optFns ...func(*Options)) *Buckets {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	for route, l := range opt.Routes {
		check(fmt.Sprintf("Routes[%q]", route), l)
	}
	check("limits", each)
	return &Buckets{each: each, opt: opt, known: lru.New[name, *caller](mostCallers * (1 + len(opt.Routes)))}
}

func check(of string, l Limits) {
	if l.PerMinute < 0 || l.Burst < 0 || l.Open < 0 || l.Bytes < 0 || l.Burst > 0 && l.PerMinute == 0 {
		panic(fmt.Sprintf("quota: New: %s %+v: not negative, and no Burst without PerMinute", of, l)) //nolint:forbidigo // a mistake in the program, at cold start
	}
}

// Begin implements [idem.Quota].
func (b *Buckets) Begin(ctx context.Context, r idem.QuotaRequest) (end func(idem.QuotaUse), wait time.Duration, err error) {
	n := estimate(r)
	for {
		all, empty, wait := b.try(r, n)
		switch {
		case wait > 0:
			return nil, wait, nil
		case empty == nil:
			return func(use idem.QuotaUse) { b.end(all, n, use) }, 0, nil
		}
		if wait, err := b.refill(ctx, empty, n); err != nil || wait > 0 {
			return nil, wait, err
		}
	}
}

// estimate is the size of a record before its answer is known.
func estimate(r idem.QuotaRequest) int64 { return 500 + r.Bytes }

// Buckets.try takes the tokens for a request of about n bytes from all accounts of the
// request. If an account has too few tokens, try takes none, and returns how long to
// wait. A wait of 0 means that the account empty must first lease tokens.
func (b *Buckets) try(r idem.QuotaRequest, n int64) (all []*account, empty *account, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.opt.Now()
	callers := append(make([]*caller, 0, 2), b.find(r.Caller, "", b.each))
	if limit, ok := b.opt.Routes[r.Route]; ok {
		callers = append(callers, b.find(r.Caller, r.Route, limit))
	}
	for _, c := range callers {
		for _, a := range c.accounts(r.Kept) {
			all = append(all, a)
			ok, w := a.has(now, a.price(n))
			wait = max(wait, w)
			if !ok {
				empty = a
			}
		}
	}
	if wait > 0 || empty != nil {
		return nil, empty, wait
	}
	for _, a := range all {
		a.take(now, a.price(n))
	}
	return all, nil, 0
}

// Buckets.end settles the accounts of an operation that began with an estimate of n bytes.
func (b *Buckets) end(all []*account, n int64, use idem.QuotaUse) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range all {
		a.settle(b.opt.Now(), n, use)
	}
}

// Buckets.refill leases tokens for the account a, for a request of about n bytes. If
// another request is leasing tokens for a, refill only waits until that call has ended.
// A wait above zero means that the shared bucket has too few tokens.
func (b *Buckets) refill(ctx context.Context, a *account, n int64) (wait time.Duration, err error) {
	b.mu.Lock()
	if busy := a.shared.busy; busy != nil {
		b.mu.Unlock()
		select {
		case <-busy:
			return 0, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	l := a.shared.lot(a.bucket, a.rate, b.opt.Now(), a.price(n))
	if l.Need <= 0 {
		b.mu.Unlock()
		return 0, nil // another request has leased enough tokens meanwhile
	}
	done := make(chan struct{})
	a.shared.busy = done
	b.mu.Unlock()

	lctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got, err := b.opt.Shared.Lease(lctx, l)

	b.mu.Lock()
	defer b.mu.Unlock()
	a.shared.busy = nil
	close(done)
	if err == nil {
		a.shared.got(b.opt.Now(), l, got)
	} else {
		a.shared.alone = b.opt.Now().Add(aloneFor)
	}
	return got.Wait, nil
}

// Buckets.find returns the accounts of a caller on a route, or on all routes if route
// is "".
func (b *Buckets) find(who, route string, limit Limits) *caller {
	of := name{sha256.Sum256([]byte(who)), route}
	c, ok := b.known.Get(of)
	if !ok {
		c = &caller{limit: limit}
		if b.opt.Shared != nil {
			c.keys.bucket = bucketName(b.opt.Name, "keys", route, who)
			c.bytes.bucket = bucketName(b.opt.Name, "bytes", route, who)
		}
		b.known.Put(of, c)
	}
	return c
}
