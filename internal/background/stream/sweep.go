package stream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// Sweep reads the whole table to find jobs and operations that the stream's readers have missed.
// Readers miss work if they are off for longer than the stream keeps its records, or if the table
// is restored from a backup. Sweep runs on a schedule. It does the work that the readers would have
// done, and lists everything that needs an operator. A Sweep is safe for concurrent use.
type Sweep struct {
	api   ScanAPI
	store *dynamo.Store
	jobs  jobWriter
	opt   SweepOptions
	log   *slog.Logger
}

// SweepOptions are a sweep's settings. By default, a sweep delivers no job, queues no ticket and
// marks no operation as stuck. It lists what it finds, lets a record go if all its jobs are
// delivered, and corrects the index of what waits for people.
type SweepOptions struct {
	// Drain delivers jobs that have waited for too long. nil: such jobs are only listed.
	Drain *Drain
	// Queue gets the tickets of abandoned operations. nil: such operations are only listed.
	Queue TicketQueue
	// MarkStuck marks an operation as stuck, by [idem.Engine.MarkStuck]. The sweep
	// calls it for an abandoned operation without a stored request, once the retention
	// has passed since the last attempt. nil: such operations are only listed.
	// MarkStuck may be called concurrently.
	//
	// If MarkStuck's error matches [jobs.ErrNotMine], the operation is left to another
	// worker's sweep. If the operation is still not marked another PassWithin later,
	// this sweep lists the operation's namespace as waiting for people.
	//
	// If MarkStuck is set, the sweep also removes the stored request of a stuck
	// operation. It does so 30 days after the last attempt, or after the retention if
	// that is longer. From then on, only a retry of the client can continue the
	// operation.
	MarkStuck func(ctx context.Context, t jobs.Ticket, why string) error

	// Late is how late the stream's readers must be before the sweep does their work. Default: 15
	// minutes.
	Late time.Duration
	// Grace is how long an operation is left to its client, as in [CompleterOptions.Grace].
	// Default: [state.DefaultGrace].
	Grace time.Duration

	// Name tells apart the sweeps of one table that have different tasks, for example
	// the sweeps of two applications. Each sweep sees the whole table. Sweeps with the
	// same Name continue each other's passes, so they must have the same Segments.
	// Default: "".
	Name string
	// PassWithin is how long the table may go without a complete pass before [Report.Overdue] is
	// set. docs/operate/background.md#the-sweep says how long a pass takes. Default: a day.
	PassWithin time.Duration

	// Segments is how many parts of the table the scan reads concurrently. If the
	// number changes, the pass under way starts again. Default: 8.
	Segments int
	// PageSize is how many items a page may have. Default: 1000.
	PageSize int
	// PagesPerSecond is the maximum number of pages that all segments together read in
	// a second. A page of 1000 records of 1 KB takes 128 read units. Default: 10.
	PagesPerSecond float64
	// MaxEntries limits the length of [Report.Entries]. It limits no counts. Default:
	// 1000.
	MaxEntries int

	// Logger gets a line for each run and each entry. Default: slog.Default().
	Logger *slog.Logger
	// Hooks are called as the sweep works, for metrics.
	Hooks Hooks
	// Now is the clock, for tests. The sweep compares it with stored times. Default: time.Now.
	Now func() time.Time
}

// NewSweep returns a sweep of store's table, which it scans with api. NewSweep panics
// if api or store is nil, or if an option is negative.
func NewSweep(api ScanAPI, store *dynamo.Store, optFns ...func(*SweepOptions)) *Sweep {
	var opt SweepOptions
	for _, fn := range optFns {
		fn(&opt)
	}
	if api == nil || store == nil || min(opt.Segments, opt.PageSize, opt.MaxEntries) < 0 || opt.PagesPerSecond < 0 ||
		min(opt.Late, opt.Grace, opt.PassWithin) < 0 {
		panic("stream: NewSweep: api and store must not be nil, numbers not negative") //nolint:forbidigo // a mistake in the program
	}
	opt.Late = cmp.Or(opt.Late, state.SweepLate)
	opt.Grace = cmp.Or(opt.Grace, state.DefaultGrace)
	opt.PassWithin = cmp.Or(opt.PassWithin, state.SweepWithin)
	opt.Segments = cmp.Or(opt.Segments, 8)
	opt.PageSize = cmp.Or(opt.PageSize, 1000)
	opt.PagesPerSecond = cmp.Or(opt.PagesPerSecond, 10)
	opt.MaxEntries = cmp.Or(opt.MaxEntries, 1000)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	return &Sweep{api: api, store: store, jobs: jobWriter{store.Table()}, opt: opt, log: cmp.Or(opt.Logger, slog.Default())}
}

// Run scans the table, acts, and reports. It returns the report even with an error. An
// error means that some work was left undone. The next run first tries the failed
// records again, whatever part of the table it scans.
//
// It is no error if ctx's time is up before the whole table is read: [Report.Complete]
// is then false, and the next run continues the pass. The progress is stored in an item
// of the table, which only sweeps read.
func (s *Sweep) Run(ctx context.Context) (*Report, error) {
	over, err := s.pass(ctx, true)
	return s.scan(ctx, over, err)
}

// GoOn continues a pass that is under way, as Run does. If no pass is under way, or
// another run works on the pass, GoOn reads one item and returns nil. Call GoOn every
// few minutes, so that each pass is completed.
func (s *Sweep) GoOn(ctx context.Context) (*Report, error) {
	over, err := s.pass(ctx, true)
	if err == nil && (over.fresh || s.opt.Now().Before(over.busy)) {
		return nil, nil
	}
	return s.scan(ctx, over, err)
}

// List scans the table from its beginning, whatever the progress of Run, and reports.
// It changes nothing.
func (s *Sweep) List(ctx context.Context) (*Report, error) {
	over, err := s.pass(ctx, false)
	return s.scan(ctx, over, err)
}

// Invoke is Run for the Lambda runtime. It accepts any payload and returns the report as JSON.
func (s *Sweep) Invoke(ctx context.Context, _ []byte) ([]byte, error) {
	rep, err := s.Run(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(rep)
}

func (s *Sweep) scan(ctx context.Context, over *pass, undone error) (*Report, error) {
	scan := &scanner{
		api: s.api, table: s.jobs.table.Name, segments: s.opt.Segments, pageSize: s.opt.PageSize, perSecond: s.opt.PagesPerSecond,
	}
	rep := &Report{}
	end, ctx, cancel := s.end(ctx)
	defer cancel()
	if !end.IsZero() {
		over.busy = s.opt.Now().Add(time.Until(end))
		over.save(ctx)
	}
	var mu sync.Mutex // rep and undone
	see := func(items []item.Map) (sum tally, failed []string) {
		found := s.look(ctx, items)
		sum.open = found.oldestOpen
		for _, e := range found.entries {
			sum.add(e)
		}
		var did Report
		var err error
		if over.acts {
			failed, err = s.act(ctx, found, &did)
		}
		mu.Lock()
		defer mu.Unlock()
		rep.list(found.entries, s.opt.MaxEntries)
		rep.did(&did)
		rep.leaves(&found)
		undone = errors.Join(undone, err)
		return sum, failed
	}
	again := s.again(ctx, half(end), over, func(items []item.Map) []string {
		_, failed := see(items) // the tally is not needed: the scan counts these records when it reads their pages
		return failed
	})
	err := scan.each(ctx, end, over, func(items []item.Map) (sum tally, seen bool) {
		fresh, tried := over.part(items)
		sum, failed := see(fresh)
		if len(failed) > 0 && out(ctx, end) {
			return sum, false // the records may have failed for lack of time, so the next run must read the page again
		}
		over.later(failed)
		of := s.look(ctx, tried)
		for _, e := range of.entries {
			sum.add(e)
		}
		sum.open = earlier(sum.open, of.oldestOpen)
		return sum, true
	})
	over.busy = time.Time{}
	over.save(ctx)
	found := over.found()
	rep.Complete, rep.Pages, rep.Scanned = over.whole(), scan.pages, scan.scanned
	rep.PassBegan, rep.Coverage = over.began, over.coverage()
	rep.ByReason, rep.OldestOpen = found.report(s.opt.Now()), found.open
	rep.LastPass, rep.Overdue = over.passed, over.acts && over.overdue(s.opt.Now(), s.opt.PassWithin)
	rep.OpenAge, rep.PassAge = age(rep.OldestOpen, s.opt.Now()), age(cmp.Or(rep.LastPass, rep.PassBegan), s.opt.Now())
	slices.SortStableFunc(rep.Entries, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Reason, b.Reason), a.Run.Compare(b.Run)) })
	err = errors.Join(undone, again, err, over.err)
	s.tell(ctx, rep, err)
	if over.acts && s.opt.Hooks.Swept != nil {
		s.opt.Hooks.Swept(ctx, rep, err)
	}
	return rep, err
}

// Sweep.pass continues the pass under way, or begins a new pass. Only a pass that acts
// stores its progress. If the stored progress can't be read, pass returns an error and
// a new pass. This new pass isn't stored.
func (s *Sweep) pass(ctx context.Context, acts bool) (*pass, error) {
	p := &pass{now: s.opt.Now, acts: acts, tried: make(map[string]int64)}
	var err error
	if acts {
		if p.cursor, err = getCursor(ctx, s.jobs.table, s.opt.Name); err == nil {
			p.table, p.name = &s.jobs.table, s.opt.Name
		}
	}
	p.fresh = p.began.IsZero()
	p.begin(s.opt.Segments, s.opt.Now())
	return p, err
}

// Sweep.end returns the time at which the scan must be over, by the wall clock. If ctx
// has no deadline, this time is zero, which means no limit. end also returns a context
// for the work on pages. This context ends later than the scan, but early enough to
// store the pass's progress.
func (s *Sweep) end(ctx context.Context) (end time.Time, work context.Context, cancel context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		work, cancel = context.WithCancel(ctx)
		return end, work, cancel
	}
	end = deadline.Add(-max(time.Until(deadline)/10, time.Second))
	work, cancel = context.WithDeadline(ctx, end.Add(deadline.Sub(end)/2))
	return end, work, cancel
}

func (s *Sweep) tell(ctx context.Context, rep *Report, err error) {
	for _, e := range rep.Entries {
		s.log.WarnContext(ctx, "unfinished", "reason", e.Reason, "record", e.Record, "operation", e.ID, "route", e.Route, "phase", e.Phase,
			"job", e.Job, "tries", e.Tries, "age", e.Age(s.opt.Now()).Round(time.Second), "error", e.LastErr)
	}
	if rep.Overdue {
		s.log.ErrorContext(ctx, "no sweep has seen the whole table in time: it fails, or needs more time, runs or pages", "within", s.opt.PassWithin,
			"pass_began", rep.PassBegan, "last_pass", rep.LastPass, "error", err)
	}
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelWarn
	}
	s.log.Log(ctx, level, "swept", "complete", rep.Complete, "pages", rep.Pages, "scanned", rep.Scanned, "delivered", rep.Delivered,
		"let_go", rep.LetGo, "queued", rep.Queued, "stuck", rep.MadeStuck, "emptied", rep.Emptied, "error", err)
}
