package sam

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Event is an event source of a function. Exactly one of the pointers is set.
type Event struct {
	Name     string
	Route    *RouteEvent
	Stream   *StreamEvent
	Queue    *QueueEvent
	Schedule *ScheduleEvent
}

// RouteEvent is the route of an API that invokes the function.
type RouteEvent struct {
	API  string // logical id; if the event names no API, the id of the API that SAM makes
	REST bool
	// Key is the route's key as API Gateway writes it: "POST /rides", "ANY
	// /{proxy+}" or, for HTTP APIs, "$default".
	Key string
	// Timeout is how long the gateway waits for the function; 0 means the gateway's default.
	Timeout time.Duration
	// authorizer is the authorizer that the event names; "" for the API's default.
	authorizer string
	scopes     []string
	where      string // for errors
}

// StreamEvent is the event source mapping of a DynamoDB stream.
type StreamEvent struct {
	ARN string
	Batching
	StartingPosition      string
	Bisect                bool
	Retries               *int          // nil: not given
	MaxAge                time.Duration // 0: not given; negative: as long as the stream keeps the record
	ParallelizationFactor int
	OnFailure             string // ARN
}

// QueueEvent is the event source mapping of an SQS queue.
type QueueEvent struct {
	Queue string // logical id
	Batching
	MaxConcurrency int
}

// Batching holds the settings that stream and queue mappings share.
type Batching struct {
	BatchSize          int           // 0: not given
	Window             time.Duration // 0: not given
	Filters            []string
	ReportItemFailures bool
	Disabled           bool
}

// ScheduleEvent is a schedule.
type ScheduleEvent struct {
	// Rule is true for an EventBridge rule (SAM's Schedule), and false for EventBridge
	// Scheduler (ScheduleV2).
	Rule       bool
	Name       string
	Expression string
	Timezone   string
	Input      string
	Disabled   bool
}

func (t *Template) events(f *Function, all *props) {
	for name, e := range all.each {
		kind, p := e.required("Type"), e.mapping("Properties")
		event := Event{Name: name}
		switch kind {
		case "HttpApi":
			event.Route = t.httpEvent(p)
		case "Api":
			event.Route = t.restEvent(p)
		case "DynamoDB":
			event.Stream = streamEvent(p, p.required("Stream"))
		case "SQS":
			arn := p.required("Queue")
			id, ok := t.queueByARN(arn)
			if !ok && arn != "" {
				p.fail("Queue", fmt.Errorf("%s is no queue of this template", arn))
			}
			event.Queue = queueEvent(p, id)
		case "Schedule", "ScheduleV2":
			event.Schedule = schedule(f.ID+name, kind, p)
		default:
			f.Notes = append(f.Notes, fmt.Sprintf("event %s of type %s has no effect: samekey local doesn't send it", name, kind))
			continue
		}
		f.Events = append(f.Events, event)
	}
}

func streamEvent(p *props, arn string) *StreamEvent {
	e := &StreamEvent{
		ARN: arn, Batching: batching(p), StartingPosition: p.required("StartingPosition"),
		Bisect: p.boolean("BisectBatchOnFunctionError"), ParallelizationFactor: p.number("ParallelizationFactor"),
		MaxAge: p.seconds("MaximumRecordAgeInSeconds"), OnFailure: destination(p),
	}
	if n, ok := p.integer("MaximumRetryAttempts"); ok {
		e.Retries = &n
	}
	if p.has("TumblingWindowInSeconds") {
		p.fail("TumblingWindowInSeconds", errors.New("samekey local has no tumbling windows"))
	}
	return e
}

func queueEvent(p *props, id string) *QueueEvent {
	return &QueueEvent{Queue: id, Batching: batching(p), MaxConcurrency: maxConcurrency(p.mapping("ScalingConfig"))}
}

func batching(p *props) Batching {
	b := Batching{
		BatchSize: p.number("BatchSize"), Window: p.seconds("MaximumBatchingWindowInSeconds"),
		ReportItemFailures: slices.Contains(p.strs("FunctionResponseTypes"), "ReportBatchItemFailures"),
		Disabled:           p.has("Enabled") && !p.boolean("Enabled"),
	}
	for filter := range p.mapping("FilterCriteria").items("Filters") {
		b.Filters = append(b.Filters, filter.required("Pattern"))
	}
	return b
}

// maxConcurrency returns the property MaximumConcurrency, or 0 if it is not given. Lambda
// allows 2 to 1000.
func maxConcurrency(p *props) int {
	n, given := p.integer("MaximumConcurrency")
	if given && (n < 2 || n > 1000) {
		p.fail("MaximumConcurrency", fmt.Errorf("%d is not within 2 and 1000", n))
	}
	return n
}

func schedule(name, kind string, p *props) *ScheduleEvent {
	s := &ScheduleEvent{Rule: kind == "Schedule", Name: name, Input: p.str("Input"), Timezone: p.str("ScheduleExpressionTimezone")}
	if s.Rule {
		s.Expression = p.required("Schedule")
		s.Disabled = p.has("Enabled") && !p.boolean("Enabled")
	} else {
		s.Expression = p.required("ScheduleExpression")
	}
	if p.str("State") == "DISABLED" {
		s.Disabled = true
	}
	if given := p.str("Name"); given != "" {
		s.Name = given
	}
	return s
}

func (t *Template) httpEvent(p *props) *RouteEvent {
	r := t.route(p, "ApiId", implicitHTTP, typeHTTPAPI)
	r.Key = "$default"
	if path := p.str("Path"); path != "" {
		r.Key = routeKey(p.str("Method"), path)
	}
	if v := p.str("PayloadFormatVersion"); v != "" && v != "2.0" {
		p.fail("PayloadFormatVersion", fmt.Errorf("%s: samekey local supports only format 2.0 for an HTTP API", v))
	}
	return r
}

func (t *Template) restEvent(p *props) *RouteEvent {
	r := t.route(p, "RestApiId", implicitREST, typeRESTAPI)
	r.REST = true
	r.Key = routeKey(p.required("Method"), p.required("Path"))
	return r
}

func (t *Template) route(p *props, property, implicit, kind string) *RouteEvent {
	auth := p.mapping("Auth")
	return &RouteEvent{
		API:        t.api(p, property, implicit, kind),
		Timeout:    time.Duration(p.number("TimeoutInMillis")) * time.Millisecond,
		authorizer: auth.str("Authorizer"),
		scopes:     auth.strs("AuthorizationScopes"),
		where:      p.path,
	}
}

// Template.api returns the id of the API that an event names. If the event names no
// API, api returns the id of the API that SAM makes: the parameter implicit.
func (t *Template) api(p *props, property, implicit, kind string) string {
	if !p.has(property) {
		return t.full(implicit)
	}
	id := p.str(property) // a Ref to an API gives the API's logical id
	if r, ok := t.resource(id); id == implicit || ok && r.kind == kind {
		return t.full(id)
	}
	p.fail(property, fmt.Errorf("%q is no %s of this template", id, kind))
	return ""
}

func routeKey(method, path string) string {
	method = strings.ToUpper(method)
	if method == "" || method == "*" || method == "X-AMAZON-APIGATEWAY-ANY-METHOD" {
		method = "ANY"
	}
	return method + " " + path
}
