package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/item"
)

// A cursor is the progress of a sweep's pass over the whole table. If a run is out of
// time, the next run continues from the cursor. The cursor's item has no attribute st,
// so nobody who reads the item takes it for a record.
type cursor struct {
	ver    int64     // counts the cursor's writes
	began  time.Time // start of the pass under way; zero between two passes
	passed time.Time // end of the most recent complete pass; zero if there is none
	busy   time.Time // when the run at work must end; zero if no run is at work, or if it has no deadline
	last   tally     // what the last complete pass found
	at     []place   // for each segment, how far the pass under way has come
	again  []failure // failed records, which the next run tries first
}

// place is the progress in a segment.
type place struct {
	after string // partition key of the last item that was seen; "" at the start
	seen  int64  // number of items that were seen
	found tally  // what was found in the items that were seen
	done  bool
}

// cursor.begin starts a pass if none is under way. If the number of segments has
// changed, begin starts the pass under way again.
func (c *cursor) begin(segments int, now time.Time) {
	if c.began.IsZero() {
		c.began = now.Truncate(time.Millisecond)
		c.at = nil
	}
	if len(c.at) != segments {
		c.at = make([]place, segments)
	}
}

// cursor.whole reports whether the pass under way is complete.
func (c *cursor) whole() bool {
	for _, p := range c.at {
		if !p.done {
			return false
		}
	}
	return len(c.at) > 0
}

// cursor.coverage returns the share of the segments that the pass under way has
// finished.
func (c *cursor) coverage() float64 {
	done := 0
	for _, p := range c.at {
		if p.done {
			done++
		}
	}
	return float64(done) / float64(max(len(c.at), 1))
}

// cursor.found returns what the pass has found so far. If the pass isn't complete and
// the previous complete pass counted more, found returns the previous count.
func (c *cursor) found() tally {
	var sum tally
	for _, p := range c.at {
		sum = sum.with(p.found)
	}
	if c.whole() {
		return sum
	}
	return sum.atLeast(c.last)
}

// cursor.next returns c's next version, which is to be stored. If the pass is complete,
// the next version has no pass under way.
func (c *cursor) next(now time.Time) cursor {
	n := *c
	n.ver++
	if c.whole() {
		n.last = c.found()
		n.began, n.passed, n.at = time.Time{}, now.Truncate(time.Millisecond), nil
	}
	return n
}

// cursor.join merges theirs, a cursor that another sweep has stored, into c. If the
// other sweep has ended c's pass or started it again, join sets c to theirs and returns
// false.
func (c *cursor) join(theirs cursor) bool {
	if !theirs.began.Equal(c.began) || len(theirs.at) != len(c.at) {
		*c = theirs
		return false
	}
	c.ver, c.passed, c.last = theirs.ver, theirs.passed, theirs.last
	for i, p := range theirs.at {
		c.at[i] = further(p, c.at[i])
	}
	return true
}

// further(a, b) returns the later of two places in a segment.
func further(a, b place) place {
	if a.done || !b.done && a.seen > b.seen {
		return a
	}
	return b
}

// cursor.overdue reports whether the most recent complete pass ended longer ago than
// the duration within. If no pass is complete yet, overdue counts from the start of the
// pass under way.
func (c *cursor) overdue(now time.Time, within time.Duration) bool {
	since := c.passed
	if since.IsZero() {
		since = c.began
	}
	return !since.IsZero() && now.Sub(since) > within
}

// pass is one run's part of a pass over the table. The whole pass may take several
// runs.
type pass struct {
	cursor
	table *item.Table // nil: the progress isn't stored
	name  string
	now   func() time.Time
	acts  bool // false: the run only lists work, and does none
	fresh bool // this run began the pass

	mu sync.Mutex // guards the fields below and the cursor
	// tried has the partition keys of failed records that this run has tried again. The
	// value is the number of earlier runs in which the record failed.
	tried   map[string]int64
	unsaved int  // pages since the last save
	lost    bool // another sweep has ended the pass, or started it again
	err     error
}

// savePages is the number of pages after which the places are stored. If the process is killed, the
// next run reads the pages after the stored places again.
const savePages = 50

// pass.place returns the place in a segment. If p.lost is set, place returns the
// segment's end.
func (p *pass) place(segment int) place {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost {
		return place{done: true}
	}
	return p.at[segment]
}

// pass.moved updates the place in a segment. It returns false if p.lost is set.
func (p *pass) moved(ctx context.Context, segment int, to place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost {
		return false
	}
	p.at[segment] = further(p.at[segment], to)
	if p.unsaved++; p.unsaved >= savePages {
		p.save(ctx)
	}
	return !p.lost
}

// pass.save stores p's cursor. If another sweep has stored a cursor meanwhile, save
// merges the two cursors and stores the result.
func (p *pass) save(ctx context.Context) {
	p.unsaved = 0
	if p.table == nil || p.lost {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for range amendRounds {
		next := p.next(p.now())
		held, err := putCursor(ctx, *p.table, p.name, next)
		switch {
		case err != nil:
			p.err = errors.Join(p.err, err)
			return
		case held == nil:
			p.ver, p.passed, p.last = next.ver, next.passed, next.last
			return
		}
		again := p.joinAgain(held.again)
		p.lost = !p.join(*held) || p.lost
		if p.again = again; p.lost && slices.Equal(again, held.again) {
			return // nothing is left to store: the stored cursor already lists all failures of this run
		}
	}
	p.err = errors.Join(p.err, errors.New("dynamo: sweep: its place can't be stored: other writes come in between"))
}

// The attributes of a cursor, besides pk, v and ver.
const (
	cursorBegan  = "began_ms"   // N  0 = no pass is under way
	cursorPassed = "passed_ms"  // N  0 = never
	cursorBusy   = "busy_ms"    // N  0 = no run is at work
	cursorLast   = "last_found" // L  a tally of the last complete pass
	cursorOpen   = "open_ms"    // N  the claim time of the oldest open operation in that pass
	cursorAt     = "segs"       // L
	cursorAgain  = "again"      // L
	placeAfter   = "k"          // S
	placeSeen    = "n"          // N
	placeDone    = "d"          // BOOL
	placeFound   = "f"          // L  a tally of the items up to the place
	placeOpen    = "o"          // N  the claim time of the oldest open operation among these items
	failurePK    = "k"          // S
	failureRuns  = "n"          // N
)

// cursorPK returns the partition key of a sweep's cursor. No record has this key, since
// records' keys begin with v1#.
func cursorPK(name string) string { return "samekey#sweep#" + name }

func getCursor(ctx context.Context, table item.Table, name string) (cursor, error) {
	out, err := table.Access.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table.Name, Key: item.Key(cursorPK(name)), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return cursor{}, item.ReadError("load the sweep's place", err)
	}
	return cursorOf(out.Item), nil
}

// putCursor stores c if the stored cursor is the version before c, or if c is version 1 and no
// cursor is stored. Otherwise putCursor changes nothing and returns the stored cursor.
func putCursor(ctx context.Context, table item.Table, name string, c cursor) (held *cursor, err error) {
	var v item.Values
	at := make([]item.Value, len(c.at))
	for i, p := range c.at {
		at[i] = &types.AttributeValueMemberM{Value: item.Map{placeAfter: v.Str(p.after), placeSeen: v.Num(p.seen), placeDone: &types.AttributeValueMemberBOOL{Value: p.done}, placeFound: p.found.value(), placeOpen: v.Millis(p.found.open)}}
	}
	again := make([]item.Value, len(c.again))
	for i, f := range c.again {
		again[i] = &types.AttributeValueMemberM{Value: item.Map{failurePK: v.Str(f.pk), failureRuns: v.Num(f.runs)}}
	}
	// The condition keeps two concurrent sweeps from resetting each other's finished
	// segments.
	condition := "ver = :prev"
	if c.ver == 1 {
		condition += " OR attribute_not_exists(ver)"
	}
	_, err = table.Access.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           &table.Name,
		Key:                 item.Key(cursorPK(name)),
		ConditionExpression: &condition,
		UpdateExpression: aws.String("SET v = :v, ver = :ver, " + cursorBegan + " = :began, " + cursorPassed + " = :passed, " + cursorAt + " = :at, " +
			cursorAgain + " = :again, " + cursorBusy + " = :busy, " + cursorLast + " = :last, " + cursorOpen + " = :open"),
		ExpressionAttributeValues: item.Map{
			":v": v.Digits(item.Layout), ":prev": v.Num(c.ver - 1), ":ver": v.Num(c.ver), ":began": v.Millis(c.began), ":passed": v.Millis(c.passed),
			":at": &types.AttributeValueMemberL{Value: at}, ":again": &types.AttributeValueMemberL{Value: again},
			":busy": v.Millis(c.busy), ":last": c.last.value(), ":open": v.Millis(c.last.open),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		there := cursorOf(failed.Item)
		return &there, nil
	}
	if err != nil {
		return nil, fmt.Errorf("dynamo: store the sweep's place: %w", err)
	}
	return nil, nil
}

// cursorOf reads a cursor. If the item is unreadable, the result has no pass under way, so a new
// pass begins.
func cursorOf(it item.Map) cursor {
	d := item.Decoder{It: it}
	c := cursor{ver: d.Number(item.AttrVer, false), began: d.Milli(cursorBegan, false), passed: d.Milli(cursorPassed, false), busy: d.Milli(cursorBusy, false)}
	c.last = tallyOf(&d, cursorLast, cursorOpen)
	d.Maps(cursorAt, func(one *item.Decoder) {
		c.at = append(c.at, place{after: one.Text(placeAfter, true), seen: one.Number(placeSeen, true), found: tallyOf(one, placeFound, placeOpen), done: one.Flag(placeDone)})
	})
	d.Maps(cursorAgain, func(one *item.Decoder) {
		c.again = append(c.again, failure{pk: one.Text(failurePK, true), runs: one.Number(failureRuns, true)})
	})
	if d.Err != nil {
		c.began, c.at, c.again, c.last = time.Time{}, nil, nil, tally{}
	}
	return c
}
