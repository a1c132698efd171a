package stack

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// schedulerAPI stands in for EventBridge Scheduler. It accepts only schedules that send
// one message to a queue of the stack, like the worker's schedules for later jobs. When
// the stack ends, schedules are lost.
type schedulerAPI struct {
	ctx context.Context //nolint:containedctx // the stack's: its end stops the timers
	arn string          // ARN of the schedules' group: arn:aws:scheduler:REGION:ACCOUNT:schedule/default
	log *slog.Logger

	mu     sync.Mutex
	names  map[string]bool
	client *sqs.Client
	urls   map[string]string // URLs of the queues, keyed by ARN
}

// scheduleNames matches the names that Scheduler accepts.
var scheduleNames = regexp.MustCompile(`^[0-9A-Za-z_.-]{1,64}$`)

// schedulerAPI.create answers a CreateSchedule call.
func (a *schedulerAPI) create(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ScheduleExpression, ScheduleExpressionTimezone, ActionAfterCompletion string

		Target struct{ Arn, RoleArn, Input string }
	}
	refuse := func(status int, kind, message string) {
		writeError(w, status, kind, map[string]string{"Message": message})
	}
	name := r.PathValue("name")
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || !scheduleNames.MatchString(name) {
		refuse(http.StatusBadRequest, "ValidationException", "a schedule has a name of at most 64 letters, digits, '-', '_' and '.', and a body of JSON")
		return
	}
	text, once := strings.CutPrefix(in.ScheduleExpression, "at(")
	at, err := time.Parse("2006-01-02T15:04:05", strings.TrimSuffix(text, ")"))
	if err != nil || !once || in.ActionAfterCompletion != "DELETE" || in.ScheduleExpressionTimezone != "" && in.ScheduleExpressionTimezone != "UTC" {
		refuse(http.StatusBadRequest, "ValidationException", "samekey local makes schedules of the form at(yyyy-mm-ddThh:mm:ss), in UTC, that are deleted after their completion")
		return
	}
	url, client := a.queue(in.Target.Arn)
	if url == "" || in.Target.RoleArn == "" {
		refuse(http.StatusBadRequest, "ValidationException", "samekey local sends schedules to queues of the template only, by a role: not to "+in.Target.Arn)
		return
	}
	if !a.take(name) {
		refuse(http.StatusConflict, "ConflictException", "Schedule "+name+" already exists.")
		return
	}
	timer := time.AfterFunc(time.Until(at), func() {
		defer a.free(name)
		if _, err := client.SendMessage(a.ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &in.Target.Input}); err != nil && a.ctx.Err() == nil {
			a.log.ErrorContext(a.ctx, "a schedule's message can't be sent", "schedule", name, "error", err)
		}
	})
	context.AfterFunc(a.ctx, func() { timer.Stop() }) //nolint:contextcheck // a schedule lives as long as the stack
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"ScheduleArn": a.arn + "/" + name})
}

func (a *schedulerAPI) take(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.names == nil {
		a.names = make(map[string]bool)
	}
	taken := a.names[name]
	a.names[name] = true
	return !taken
}

func (a *schedulerAPI) free(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.names, name)
}

// schedulerAPI.serves sets the queues to which schedules can send.
func (a *schedulerAPI) serves(q *queues) {
	if q == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.client, a.urls = q.client, make(map[string]string, len(q.made))
	for _, one := range q.made {
		a.urls[one.arn] = one.url
	}
}

// schedulerAPI.queue returns the URL of the queue with this ARN, and a client for it.
// The URL is "" if there is no such queue.
func (a *schedulerAPI) queue(arn string) (string, *sqs.Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.urls[arn], a.client
}
