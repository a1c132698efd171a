package completer_test

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/base/errlist"
)

// fakeSQS keeps what it was sent. Entries whose body holds "refused" or "mute"
// fail, or are not told of.
type fakeSQS struct {
	err   error
	then  func() // is called by each call
	calls []int
	got   []types.SendMessageBatchRequestEntry
	url   string

	mu      sync.Mutex
	hidden  map[string]time.Duration // by receipt
	noHide  error                    // of ChangeMessageVisibility
	waiting string                   // messages in flight
	asked   int                      // how often for that
}

func (f *fakeSQS) ChangeMessageVisibility(_ context.Context, in *sqs.ChangeMessageVisibilityInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.noHide != nil {
		return nil, f.noHide
	}
	if f.hidden == nil {
		f.hidden = make(map[string]time.Duration)
	}
	f.hidden[strings.TrimPrefix(*in.ReceiptHandle, "r-")] = time.Duration(in.VisibilityTimeout) * time.Second
	return &sqs.ChangeMessageVisibilityOutput{}, nil
}

func (f *fakeSQS) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked++; f.waiting == "" {
		return nil, errors.New("denied")
	}
	const hidden = "ApproximateNumberOfMessagesNotVisible"
	if !slices.Contains(in.AttributeNames, hidden) {
		return &sqs.GetQueueAttributesOutput{}, nil
	}
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{hidden: f.waiting}}, nil
}

func (f *fakeSQS) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	f.calls = append(f.calls, len(in.Entries))
	if f.then != nil {
		f.then()
	}
	if f.err != nil {
		return nil, f.err
	}
	f.url = aws.ToString(in.QueueUrl)
	out := &sqs.SendMessageBatchOutput{Successful: []types.SendMessageBatchResultEntry{{Id: aws.String("no number")}, {Id: aws.String("-1")}, {Id: aws.String(strconv.Itoa(len(in.Entries)))}, {}}}
	for _, e := range slices.Backward(in.Entries) { // results come in any order
		switch {
		case strings.Contains(*e.MessageBody, "refused"):
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("InternalError"), Message: aws.String("m")})
		case strings.Contains(*e.MessageBody, "mute"):
		default:
			out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
		}
	}
	f.got = append(f.got, in.Entries...)
	return out, nil
}

func tickets(owners ...string) []jobs.Ticket {
	all := make([]jobs.Ticket, len(owners))
	for i, owner := range owners {
		all[i] = jobs.Ticket{PK: "v1##" + owner, Operation: owner, Due: now}
	}
	return all
}

// A ticket is hidden until it is due, but not for longer than SQS can; rounded
// up, since one that comes early takes another round.
func TestQueueHidesTickets(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]int32{
		-time.Hour: 0, 0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, 5 * time.Minute: 300, 15*time.Minute - 1: 900, 15 * time.Minute: 900, 100 * time.Hour: 900,
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &arnSQS{} // without a Scheduler, for which it would matter
			ticket := tickets("o")
			ticket[0].Due, ticket[0].Jobs = time.Now().Add(wait), true
			errs := completer.NewQueue(f, "https://sqs/1/tickets").Put(t.Context(), ticket)
			if err := errors.Join(errs...); err != nil || f.got[0].DelaySeconds != want || f.url != "https://sqs/1/tickets" {
				t.Errorf("due in %v: hidden for %d s at %s, want %d; %v", wait, f.got[0].DelaySeconds, f.url, want, err)
			}
		})
	}
}

// A ticket in the queue names record and operation. What a later version adds is ignored, so
// that a roll-back loses none.
func TestTicketsThereAndBack(t *testing.T) {
	t.Parallel()
	f := &fakeSQS{}
	sent := jobs.Ticket{PK: "v1#ns#<é>", Operation: "id", Owner: "o", Ver: 1 << 60, Released: true, Due: now, Function: "rides", Tenant: "jane|1"}
	ofJobs := sent
	ofJobs.Jobs = true
	if errs := completer.NewQueue(f, "url").Put(t.Context(), []jobs.Ticket{sent, ofJobs}); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	for i, want := range []string{
		`{"pk":"v1#ns#\u003cé\u003e","id":"id","due_ms":1800000000123}`, `{"pk":"v1#ns#\u003cé\u003e","id":"id","jobs":true,"due_ms":1800000000123}`,
	} {
		if got := *f.got[i].MessageBody; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
	}
	var got jobs.Ticket
	h := newHandler(&fakeSQS{}, &records{}, always(completer.TicketDone), func(o *completer.Options) {
		o.Jobs = func(_ context.Context, t jobs.Ticket) error { got = t; return nil }
	})
	later := strings.Replace(*f.got[1].MessageBody, "{", `{"of":"a later version",`, 1)
	if stay := handle(t, h, events.SQSMessage{MessageId: "m", Body: later, EventSource: "aws:sqs"}); stay != nil {
		t.Errorf("%v stay", stay)
	}
	if diff := cmp.Diff(jobs.Ticket{PK: sent.PK, Operation: "id", Jobs: true, Due: now}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestQueueTakesTenACall(t *testing.T) {
	t.Parallel()
	f := &fakeSQS{}
	var owners []string
	for i := range 23 {
		owners = append(owners, fmt.Sprint("o", i))
	}
	owners[0], owners[3], owners[11], owners[22] = "mute", "refused", "mute", "refused"
	errs := completer.NewQueue(f, "url").Put(t.Context(), tickets(owners...))
	if diff := cmp.Diff([]int{10, 10, 3}, f.calls); diff != "" || len(errs) != 23 {
		t.Errorf("%d results, calls (-want +got):\n%s", len(errs), diff)
	}
	said := map[string]string{"mute": "completer: sqs: the answer doesn't tell", "refused": "completer: sqs: InternalError: m"}
	for i, err := range errs {
		if want := stdcmp.Or(said[owners[i]], "<nil>"); fmt.Sprint(err) != want {
			t.Errorf("%s: %v, want %s", owners[i], err, want)
		}
	}
	if errs := completer.NewQueue(f, "url").Put(t.Context(), nil); len(errs) != 0 || len(f.calls) != 3 {
		t.Errorf("nothing took a call: %v, %v", errs, f.calls)
	}
}

// A queue that can't be reached is asked once, and not for each ten of the tickets
// that wait; and once time is up it isn't asked at all.
func TestQueueThatIsDownIsAskedOnce(t *testing.T) {
	t.Parallel()
	all := tickets(make([]string, 35)...)
	f := &fakeSQS{err: errors.New("connection refused")}
	untried := 0
	for _, err := range errlist.Pad(completer.NewQueue(f, "url").Put(t.Context(), all), len(all)) {
		if err == nil {
			t.Error("a ticket is queued")
		}
		if errors.Is(err, jobs.ErrHeldBack) {
			untried++
		}
	}
	if len(f.calls) != 1 || untried != 25 {
		t.Errorf("calls %v, %d not tried", f.calls, untried)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.then = cancel // meanwhile
	if errs := completer.NewQueue(f, "url").Put(ctx, all); !strings.Contains(errs[34].Error(), "unavailable to an earlier one") {
		t.Errorf("the last one: %v", errs[34])
	}
	f = &fakeSQS{}
	errs := completer.NewQueue(f, "url").Put(ctx, all)
	if len(f.calls) != 0 || len(errs) != 35 || !errors.Is(errs[0], jobs.ErrHeldBack) {
		t.Errorf("time is up: calls %v, %v", f.calls, errs)
	}
}
