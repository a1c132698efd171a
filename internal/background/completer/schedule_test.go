package completer_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
)

const role = "arn:aws:iam::123456789012:role/later"

// fakeScheduler keeps schedules by their names. A second one of a name is a conflict.
type fakeScheduler struct {
	err  error // of a call, instead
	lost bool  // the answers of calls that were applied
	hang bool

	mu    sync.Mutex
	log   bytes.Buffer
	hangs int // at once
	most  int
	calls int
	made  map[string]*scheduler.CreateScheduleInput
}

func (f *fakeScheduler) CreateSchedule(ctx context.Context, in *scheduler.CreateScheduleInput, _ ...func(*scheduler.Options)) (*scheduler.CreateScheduleOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hang {
		f.hangs++
		f.most = max(f.most, f.hangs)
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		f.hangs--
		return nil, ctx.Err()
	}
	f.calls++
	if f.err != nil {
		return nil, f.err
	}
	if f.made[*in.Name] != nil {
		return nil, &types.ConflictException{Message: aws.String("Schedule " + *in.Name + " already exists.")}
	}
	if f.made == nil {
		f.made = make(map[string]*scheduler.CreateScheduleInput)
	}
	f.made[*in.Name] = in
	if f.lost {
		return nil, errors.New("connection reset")
	}
	return &scheduler.CreateScheduleOutput{}, nil
}

// arnSQS is a queue that tells its ARN.
type arnSQS struct {
	fakeSQS
	arns int
}

func (f *arnSQS) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if !slices.Contains(in.AttributeNames, "QueueArn") {
		return &sqs.GetQueueAttributesOutput{}, nil
	}
	f.arns++
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"QueueArn": "arn:aws:sqs:us-east-1:1:tickets"}}, nil
}

func scheduling(s *fakeScheduler) func(*completer.QueueOptions) {
	return func(o *completer.QueueOptions) {
		o.Schedule, o.Role, o.Logger = s.CreateSchedule, role, slog.New(slog.NewTextHandler(&s.log, nil))
	}
}

// A ticket for a job's time beyond what the queue can hide is a schedule, which sends the same
// message to the queue once, not before the time, and is gone. A ticket that is put again, and
// one whose answer was lost, make no other. Other tickets go to the queue.
func TestTicketBeyondTheQueuesDelayIsASchedule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, s := &arnSQS{}, &fakeScheduler{}
		queue := completer.NewQueue(q, "url", scheduling(s))
		due := time.Now().Add(24*time.Hour + time.Millisecond)
		all := []jobs.Ticket{
			{PK: "v1##a", Operation: "A2", Jobs: true, Due: due},
			{PK: "v1##b", Operation: "B2", Jobs: true, Due: time.Now().Add(15 * time.Minute)},
			{PK: "v1##c", Operation: "C2", Due: due}, // of an operation, which moves on meanwhile
			{PK: "v1##a", Operation: "A2", Jobs: true, Due: due.Add(time.Hour + time.Second)},
			{PK: "v1##a", Operation: "A2", Jobs: true, Due: due.Truncate(time.Second)},
		}
		asked := 0
		for range 2 {
			asked = q.arns
			if errs := queue.Put(t.Context(), all); len(errs) != 5 || errors.Join(errs...) != nil {
				t.Fatal(errs)
			}
		}
		if len(q.got) != 4 || !strings.Contains(*q.got[0].MessageBody, "v1##b") || !strings.Contains(*q.got[1].MessageBody, "v1##c") || q.arns != asked {
			t.Errorf("sent %+v, asked for the ARN %d times at first, then %d", q.got, asked, q.arns-asked)
		}
		if s.calls != 6 || s.log.Len() > 0 {
			t.Errorf("%d calls, and the log says %s", s.calls, &s.log)
		}
		var at []string
		for _, in := range s.made {
			at = append(at, *in.ScheduleExpression)
		}
		slices.Sort(at)
		if diff := cmp.Diff([]string{"at(2000-01-02T00:00:00)", "at(2000-01-02T00:00:01)", "at(2000-01-02T01:00:02)"}, at); diff != "" {
			t.Errorf("schedules (-want +got):\n%s", diff)
		}
		in := s.made["samekey-A2-946771200001"]
		if in == nil {
			t.Fatalf("got %v", s.made)
		}
		want := &scheduler.CreateScheduleInput{
			Name: in.Name, ScheduleExpression: aws.String("at(2000-01-02T00:00:01)"), ActionAfterCompletion: types.ActionAfterCompletionDelete,
			FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
			Target: &types.Target{
				Arn: aws.String("arn:aws:sqs:us-east-1:1:tickets"), RoleArn: aws.String(role), Input: aws.String(`{"pk":"v1##a","id":"A2","jobs":true,"due_ms":946771200001}`),
			},
		}
		if diff := cmp.Diff(want, in, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// Whatever Scheduler answers, no ticket is lost: the queue takes it.
func TestTicketThatHasNoSchedule(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		s    *fakeScheduler
		q    completer.QueueAPI
		left time.Duration // of the context; 0: no end
		took time.Duration
	}{
		"throttled":                   {&fakeScheduler{err: &types.ThrottlingException{}}, &arnSQS{}, 5 * time.Second, 0},
		"quota":                       {&fakeScheduler{err: &types.ServiceQuotaExceededException{}}, &arnSQS{}, 5 * time.Second, 0},
		"denied":                      {&fakeScheduler{err: errors.New("AccessDeniedException")}, &arnSQS{}, 5 * time.Second, 0},
		"an answer is lost":           {&fakeScheduler{lost: true}, &arnSQS{}, 5 * time.Second, 0},
		"it hangs":                    {&fakeScheduler{hang: true}, &arnSQS{}, 5 * time.Second, 2500 * time.Millisecond},
		"it hangs, and there is time": {&fakeScheduler{hang: true}, &arnSQS{}, 0, 10 * time.Second},
		"the ARN can't be read":       {&fakeScheduler{}, &fakeSQS{}, 5 * time.Second, 0},
		"no ARN":                      {&fakeScheduler{}, &fakeSQS{waiting: "0"}, 5 * time.Second, 0},
	} {
		virtual(t, name, func(t *testing.T) {
			ctx, began := t.Context(), time.Now()
			if tt.left > 0 {
				limited, cancel := context.WithTimeout(ctx, tt.left)
				defer cancel()
				ctx = limited
			}
			q, ok := tt.q.(*fakeSQS)
			if !ok {
				q = &tt.q.(*arnSQS).fakeSQS
			}
			all := slices.Repeat([]jobs.Ticket{{PK: "v1##a", Operation: "A", Jobs: true, Due: began.Add(time.Hour)}}, 9)
			if tt.s.lost {
				all = all[:1] // the others are told of it
			}
			errs := completer.NewQueue(tt.q, "url", scheduling(tt.s)).Put(ctx, all)
			if errors.Join(errs...) != nil || len(q.got) != len(all) || q.got[0].DelaySeconds != 900 || time.Since(began) != tt.took {
				t.Errorf("%v after %v, sent %+v", errs, time.Since(began), q.got)
			}
			if n := strings.Count(tt.s.log.String(), "no schedule could be made"); n != len(all) || tt.s.most != 0 && tt.s.most != 8 {
				t.Errorf("%d at once, the log says %s", tt.s.most, &tt.s.log)
			}
		})
	}
}

// Every name is one that Scheduler takes, and different tickets have different names.
func TestNamesOfSchedules(t *testing.T) {
	t.Parallel()
	s := &fakeScheduler{}
	queue := completer.NewQueue(&arnSQS{}, "url", scheduling(s))
	due := time.Now().Add(15*time.Minute + time.Second)
	var all []jobs.Ticket
	for _, pk := range []string{"v1##a", "v1##b"} {
		for _, op := range []string{"", "with space", strings.Repeat("x", 200), "ä"} {
			all = append(all, jobs.Ticket{PK: pk, Operation: op, Jobs: true, Due: due}, jobs.Ticket{PK: pk, Operation: op, Jobs: true, Due: due.Add(time.Millisecond)})
		}
	}
	queue.Put(t.Context(), all)
	if len(s.made) != len(all) {
		t.Errorf("%d names of %d tickets", len(s.made), len(all))
	}
	longest := 0
	for name := range s.made {
		longest = max(longest, len(name))
		if !regexp.MustCompile(`^[0-9a-zA-Z_.-]{1,64}$`).MatchString(name) {
			t.Errorf("Scheduler takes no %q", name)
		}
	}
	if want := len("samekey-") + 32 + len("-1700000000000"); longest != want {
		t.Errorf("the longest name has %d bytes, want %d", longest, want)
	}
}

// A ticket that has waited in its queue for two weeks is tried for as long as any, from its time
// on: a queue without a Scheduler keeps it.
func TestTicketIsAsOldAsItsTime(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for name, tt := range map[string]struct {
		sent, due time.Duration // ago
		tried     bool
	}{
		"due yesterday": {13 * day, day, true}, "due long ago": {13 * day, 11 * day, false}, "sent late": {day, 12 * day, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tried := false
			f := &fakeSQS{}
			h := newHandler(f, &records{}, always(completer.TicketDone), func(o *completer.Options) {
				o.Jobs = func(context.Context, jobs.Ticket) error { tried = true; return nil }
			})
			if errs := completer.NewQueue(f, "url").Put(t.Context(), []jobs.Ticket{{PK: "v1##a", Operation: "A", Jobs: true, Due: now.Add(-tt.due)}}); errors.Join(errs...) != nil {
				t.Fatal(errs)
			}
			m := events.SQSMessage{MessageId: "m", Body: *f.got[0].MessageBody, EventSource: "aws:sqs", Attributes: map[string]string{"SentTimestamp": strconv.FormatInt(now.Add(-tt.sent).UnixMilli(), 10)}}
			if stay := handle(t, h, m); stay != nil || tried != tt.tried {
				t.Errorf("%v stay, tried %t", stay, tried)
			}
		})
	}
}
