package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/defaults"
)

// Growth is proof/bench/growth.json: how costs and times grow with something.
type Growth struct {
	Run    Run     `json:"run"`
	Charts []Chart `json:"charts"`
}

// Chart is what one picture shows.
type Chart struct {
	ID    string `json:"id"`
	Lines []Line `json:"lines"`
}

// Line is a line of a chart.
type Line struct {
	Name   string       `json:"name"`
	Points [][2]float64 `json:"points"` // x and y
}

// add adds a point to the line with this name.
func (c *Chart) add(name string, x, y float64) {
	i := slices.IndexFunc(c.Lines, func(l Line) bool { return l.Name == name })
	if i < 0 {
		i = len(c.Lines)
		c.Lines = append(c.Lines, Line{Name: name})
	}
	c.Lines[i].Points = append(c.Lines[i].Points, [2]float64{x, y})
}

// scales are the sizes at which growth is measured, and how often.
type scales struct {
	records, bodies, phases, jobs, callers []int
	times                                  int
}

// longScales are for the page; records are at most so many.
func longScales(records int) scales {
	s := scales{
		records: []int{1_000, 10_000, 100_000, 1_000_000},
		bodies:  []int{300, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 6 << 20},
		phases:  []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
		jobs:    []int{0, 1, 2, 5, 10, 20, 50},
		callers: []int{1, 2, 4, 8, 16, 32, 64, 128, 256},
		times:   20,
	}
	s.records = slices.DeleteFunc(s.records, func(n int) bool { return n > records })
	return s
}

func shortScales() scales {
	return scales{records: []int{20, 40}, bodies: []int{300, 20 << 10}, phases: []int{1, 2}, jobs: []int{0, 2}, callers: []int{1, 3}, times: 2}
}

// set replaces the charts with the same ids, or adds them.
func (g *Growth) set(charts []Chart) {
	for _, c := range charts {
		if i := slices.IndexFunc(g.Charts, func(old Chart) bool { return old.ID == c.ID }); i >= 0 {
			g.Charts[i] = c
		} else {
			g.Charts = append(g.Charts, c)
		}
	}
}

// countGrowth returns the charts that are the same in every run.
func countGrowth(ctx context.Context, db *dynamotest.DB, prices Prices, s scales) (all []Chart, _ error) {
	for _, part := range []func() (Chart, error){
		func() (Chart, error) { return countBodies(ctx, db, prices, s.bodies) },
		func() (Chart, error) { return countPhases(ctx, db, prices, s.phases) },
		func() (Chart, error) { return countJobs(ctx, db, prices, s.jobs) },
	} {
		c, err := part()
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// timeGrowth returns the charts of times, and of what takes much time to count.
func timeGrowth(ctx context.Context, db *dynamotest.DB, s scales) (all []Chart, _ error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Hour)
	defer cancel()
	for _, part := range []func() ([]Chart, error){
		func() ([]Chart, error) { return timeBodies(ctx, db, s.bodies, s.times/4) },
		func() ([]Chart, error) { return timePhases(ctx, db, s.phases, s.times) },
		func() ([]Chart, error) { return growRecords(ctx, db, s.records, 10*s.times) },
	} {
		charts, err := part()
		if err != nil {
			return nil, err
		}
		all = append(all, charts...)
	}
	return all, nil
}

// counted returns what run takes on a fresh table, after prepare.
func counted(ctx context.Context, db *dynamotest.DB, prepare, run func(context.Context, *bed) error) (cost, error) {
	b, err := newBed(ctx, db)
	if err == nil && prepare != nil {
		err = prepare(ctx, b)
	}
	if err != nil {
		return cost{}, err
	}
	b.meter.reset()
	err = run(ctx, b)
	return b.meter.total(), err
}

// place is a point whose time is to be taken.
type place struct {
	line string
	x    float64
	do   op
}

// inTurns adds the median time of each place, in ms. The places take turns.
func (c *Chart) inTurns(times int, all []place) error {
	var ops []op
	for _, p := range all {
		ops = append(ops, func(i int) error { return p.do(i + 1) })
		if err := p.do(0); err != nil { // the first is slower
			return err
		}
	}
	took, err := interleaved(max(times, 3), 1, nil, ops...)
	if err != nil {
		return err
	}
	for i, p := range all {
		c.add(p.line, p.x, milli(took[i]))
	}
	return nil
}

// milli is a median in ms, to a µs.
func milli(s Spread) float64 { return math.Round(s.P50/1e3) / 1e3 }

// numbered is the i-th new request, of the engine's options and the handler, without
// counting.
func numbered(ctx context.Context, b *bed, opt func(*idem.Options), fn handler) (op, error) {
	s, err := dynamo.New(b.direct, b.table)
	if err != nil {
		return nil, err
	}
	e := b.engineOn(s, opt)
	return func(i int) error {
		_, err := e.Do(ctx, post(fmt.Sprintf("key-%032d", i), "{}"), fn)
		return err
	}, nil
}

func largest(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody }

// bodyKinds are bodies of one size.
func bodyKinds(size int) map[string]string {
	return map[string]string{"compresses (JSON)": order(size), "doesn't compress": noise(size)}
}

func countBodies(ctx context.Context, db *dynamotest.DB, prices Prices, sizes []int) (Chart, error) {
	dollars := Chart{ID: "body-dollars"}
	for _, size := range sizes {
		kinds := bodyKinds(size)
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			first := fresh(request, largest, answers(kinds[kind]))
			for _, path := range []struct {
				name         string
				prepare, run func(context.Context, *bed) error
			}{{"new", nil, first}, {"replay", first, replayed(request, largest)}} {
				c, err := counted(ctx, db, path.prepare, path.run)
				if err != nil {
					return dollars, err
				}
				dollars.add(path.name+", "+kind, float64(size), prices.of(c.Write, c.Read))
			}
		}
	}
	return dollars, nil
}

func timeBodies(ctx context.Context, db *dynamotest.DB, sizes []int, times int) ([]Chart, error) {
	ms := Chart{ID: "body-time"}
	var isNew, again []place
	for _, size := range sizes {
		kinds := bodyKinds(size)
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			b, err := newBed(ctx, db)
			if err != nil {
				return nil, err
			}
			do, err := numbered(ctx, b, largest, creates(kinds[kind]))
			if err != nil {
				return nil, err
			}
			isNew, again = append(isNew, place{"new, " + kind, float64(size), do}), append(again, place{"replay, " + kind, float64(size), do})
		}
	}
	err := ms.inTurns(times, isNew)
	if err == nil {
		err = ms.inTurns(times, again) // the same keys
	}
	return []Chart{ms}, err
}

var phaseKinds = []struct {
	name   string
	opt    func(*idem.Options)
	writes bool
}{{"a write of yours in each", plain, true}, {"no writes of yours", plain, false}}

func countPhases(ctx context.Context, db *dynamotest.DB, prices Prices, numbers []int) (Chart, error) {
	dollars := Chart{ID: "phases-dollars"}
	for _, k := range numbers {
		for _, kind := range phaseKinds {
			c, err := counted(ctx, db, nil, fresh(request, kind.opt, phased(k, kind.writes)))
			if err != nil {
				return dollars, err
			}
			dollars.add(kind.name, float64(k), prices.of(c.Write, c.Read))
		}
	}
	return dollars, nil
}

func timePhases(ctx context.Context, db *dynamotest.DB, numbers []int, times int) ([]Chart, error) {
	ms := Chart{ID: "phases-time"}
	var all []place
	for _, k := range numbers {
		for _, kind := range phaseKinds {
			b, err := newBed(ctx, db)
			if err != nil {
				return nil, err
			}
			do, err := numbered(ctx, b, kind.opt, phased(k, kind.writes)(b))
			if err != nil {
				return nil, err
			}
			all = append(all, place{kind.name, float64(k), do})
		}
	}
	err := ms.inTurns(times, all)
	return []Chart{ms}, err
}

func countJobs(ctx context.Context, db *dynamotest.DB, prices Prices, numbers []int) (Chart, error) {
	dollars := Chart{ID: "jobs-dollars"}
	for _, n := range numbers {
		stage := fresh(request, plain, staging(n))
		c, err := counted(ctx, db, nil, stage)
		if err != nil {
			return dollars, err
		}
		dollars.add("the request", float64(n), prices.of(c.Write, c.Read))
		if c, err = counted(ctx, db, stage, drains); err != nil {
			return dollars, err
		}
		dollars.add("the drain", float64(n), prices.of(c.Write, c.Read))
	}
	return dollars, nil
}

// work is how long the handler of growCallers works.
const work = 300 * time.Millisecond

// growCallers has callers send the same request at once.
func growCallers(ctx context.Context, db *dynamotest.DB, numbers []int) ([]Chart, error) {
	calls, ms := Chart{ID: "callers-calls"}, Chart{ID: "callers-time"}
	if _, _, err := together(ctx, db, 1, plain); err != nil { // the first costs more
		return nil, err
	}
	for _, n := range numbers {
		for _, mode := range []struct {
			name string
			opt  func(*idem.Options)
		}{
			{"refuse: 409", plain},
			{"wait: the answer", func(o *idem.Options) { o.InFlight = idem.InFlightWait }},
			{"accept: 202", func(o *idem.Options) {
				o.InFlight, o.StatusURL = idem.InFlightAccept, "https://api.example.com/requests/"
			}},
		} {
			made, took, err := together(ctx, db, n, mode.opt)
			if err != nil {
				return nil, fmt.Errorf("%d callers, %s: %w", n, mode.name, err)
			}
			calls.add(mode.name, float64(n), float64(made))
			ms.add(mode.name, float64(n), math.Round(took.Seconds()*1e3))
		}
	}
	return []Chart{calls, ms}, nil
}

// together has n callers send the same request at once, and returns the calls that they
// made, and the time until all had an answer.
func together(ctx context.Context, db *dynamotest.DB, n int, opt func(*idem.Options)) (made int64, took time.Duration, _ error) {
	b, err := newBed(ctx, db)
	if err != nil {
		return 0, 0, err
	}
	api := &callCounter{API: b.direct}
	s, err := dynamo.New(api, b.table)
	if err != nil {
		return 0, 0, err
	}
	e, ran := b.engineOn(s, opt, func(o *idem.Options) { o.WaitMax = time.Minute }), new(atomic.Int32)
	done := make(chan error, n)
	begun := time.Now()
	for range n {
		go func() {
			_, err := e.Serve(ctx, keyed("/orders"), func(context.Context) (idem.Response, error) {
				ran.Add(1)
				time.Sleep(work) //nolint:forbidigo // the handler's work
				return created(order(answerSize)), nil
			})
			done <- err
		}()
	}
	for range n {
		err = errors.Join(err, <-done)
	}
	took = time.Since(begun)
	if got := ran.Load(); err == nil && got != 1 {
		err = fmt.Errorf("the handler ran %d times", got)
	}
	return api.made.Load(), took, err
}

// callCounter counts calls, at once.
type callCounter struct {
	dynamo.API
	made atomic.Int64
}

func (c *callCounter) PutItem(ctx context.Context, in *dynamodb.PutItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	c.made.Add(1)
	return c.API.PutItem(ctx, in, optFns...)
}

func (c *callCounter) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	c.made.Add(1)
	return c.API.UpdateItem(ctx, in, optFns...)
}

func (c *callCounter) GetItem(ctx context.Context, in *dynamodb.GetItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	c.made.Add(1)
	return c.API.GetItem(ctx, in, optFns...)
}

// growRecords times requests on a table that grows.
func growRecords(ctx context.Context, db *dynamotest.DB, numbers []int, times int) ([]Chart, error) {
	ms, round := Chart{ID: "records-time"}, 0
	var isNew, again trio
	err := growTable(ctx, db, numbers, func(ctx context.Context, b *bed, n int) (err error) {
		if round == 0 {
			if isNew, again, err = localTrios(ctx, b, b.direct, times); err != nil {
				return err
			}
		}
		x, keys := float64(n), warm+round*times // the replays are of the first round's
		round++
		at := func(do op) op { return func(i int) error { return do(i + keys) } }
		took, err := interleaved(times, 1, nil, at(isNew.library), at(isNew.smallest))
		if err != nil {
			return err
		}
		ms.add("new", x, milli(took[0]))
		ms.add("new, smallest items", x, milli(took[1]))
		if took, err = interleaved(times, 1, nil, at(again.library), at(again.smallest)); err != nil {
			return err
		}
		ms.add("replay", x, milli(took[0]))
		ms.add("replay, smallest items", x, milli(took[1]))
		return nil
	})
	return []Chart{ms}, err
}

// growTable fills a table with finished records, and calls at whenever it has one of the
// numbers.
func growTable(ctx context.Context, db *dynamotest.DB, numbers []int, at func(ctx context.Context, b *bed, n int) error) error {
	done, err := finished(ctx, db, answerSize)
	if err != nil {
		return err
	}
	b, err := newBed(ctx, db)
	if err != nil {
		return err
	}
	have := 0
	for _, n := range numbers {
		if err := b.fillWith(ctx, done, have, n); err != nil {
			return err
		}
		have = n
		if err := at(ctx, b, n); err != nil {
			return err
		}
	}
	return nil
}

// fillWith adds copies of a finished record under other keys, from the have-th to the
// n-th.
func (b *bed) fillWith(ctx context.Context, done item, have, n int) error {
	const batch, writers = 25, 8
	begins := make(chan int)
	failed := make(chan error, writers)
	for range writers {
		go func() {
			var err error
			for first := range begins {
				if err != nil {
					continue
				}
				var puts []types.WriteRequest
				for i := first; i < min(first+batch, n); i++ {
					puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: putAs(&dynamodb.PutItemInput{Item: done}, samePK(1_000*warm+i)).Item}})
				}
				var out *dynamodb.BatchWriteItemOutput
				out, err = b.direct.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{b.table: puts}})
				if err == nil && len(out.UnprocessedItems) > 0 {
					err = errors.New("items are left unprocessed")
				}
			}
			failed <- err
		}()
	}
	for first := have; first < n; first += batch {
		begins <- first
	}
	close(begins)
	var all error
	for range writers {
		all = errors.Join(all, <-failed)
	}
	return all
}
