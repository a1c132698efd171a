package tenants_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

const domain, urlDomain = "api.example.com", "x.lambda-url.eu-central-1.on.aws"

// open makes the doors of an app.
func (w *world) open(a *app, set settings) map[string]door {
	e := w.engine(a, set)
	doors := map[string]door{
		"httpapi": over(w, a, e, "httpapi", lambda.HTTPAPI, httpAPICaller, func(r reply) events.APIGatewayV2HTTPResponse {
			return events.APIGatewayV2HTTPResponse{StatusCode: r.status, Headers: r.header, Body: r.body}
		}),
		"rest": over(w, a, e, "rest", lambda.REST, restCaller, func(r reply) events.APIGatewayProxyResponse {
			return events.APIGatewayProxyResponse{StatusCode: r.status, Headers: r.header, Body: r.body}
		}),
		"url": over(w, a, e, "url", lambda.FunctionURL, urlCaller, func(r reply) events.LambdaFunctionURLResponse {
			return events.LambdaFunctionURLResponse{StatusCode: r.status, Headers: r.header, Body: r.body}
		}),
		"alb": over(w, a, e, "alb", lambda.ALB, func(ev events.ALBTargetGroupRequest) caller { return unverified(ev.Headers) },
			func(r reply) events.ALBTargetGroupResponse {
				return events.ALBTargetGroupResponse{StatusCode: r.status, Headers: r.header, Body: r.body}
			}),
		"router": routed(w, a, e),
	}
	if a.phases && !a.resumable || a.name == "stripe" || a.name == "routes" {
		return doors
	}
	w.typedDoors(e, doors)
	return doors
}

// over wraps the handler for an adapter of HTTP.
func over[Ev, Re any](w *world, a *app, e *idem.Engine, name string, ad lambda.Adapter[Ev, Re], who func(Ev) caller, own func(reply) Re) door {
	h := lambda.Wrap(e, ad, handler(w, ad, who, own), func(o *lambda.HandlerOptions) { o.Name = name })
	if a.statusURL == "" {
		return door{h.Invoke}
	}
	status := lambda.StatusHandler(e, ad)
	return door{func(ctx context.Context, payload []byte) ([]byte, error) {
		if v, ok := ctx.Value(visitKey{}).(*visit); ok && v.req.status {
			return status.Invoke(ctx, payload)
		}
		return h.Invoke(ctx, payload)
	}}
}

func handler[Ev, Re any](w *world, ad lambda.Adapter[Ev, Re], who func(Ev) caller, own func(reply) Re) func(context.Context, Ev) (Re, error) {
	return func(ctx context.Context, ev Ev) (Re, error) {
		req, err := ad.Request(ctx, ev)
		if err != nil {
			return *new(Re), err
		}
		r, err := w.work(ctx, w.known(ctx, who(ev)), contentOf(req.Method, req.Path, req.Query, string(req.Body)))
		if err != nil {
			return *new(Re), err
		}
		return own(r), nil
	}
}

// routed has each path behind a route of its own.
func routed(w *world, a *app, e *idem.Engine) door {
	r := lambda.NewRouter(lambda.HTTPAPI)
	h := handler(w, lambda.HTTPAPI, httpAPICaller, func(r reply) events.APIGatewayV2HTTPResponse {
		return events.APIGatewayV2HTTPResponse{StatusCode: r.status, Headers: r.header, Body: r.body}
	})
	r.Keyed("POST /pay", e, h)
	r.Keyed("POST /refund", e, h)
	r.Route("PUT /pay", h)
	r.Route("GET /pay", h)
	if a.statusURL != "" {
		r.Route("GET "+a.statusURL+"{key...}", lambda.StatusHandler(e, lambda.HTTPAPI).Handle)
	}
	return door{r.Invoke}
}

// known completes a caller by facts of the invocation.
func (w *world) known(ctx context.Context, c caller) caller {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		c.tenant = lc.TenantID
	}
	return c
}

func unverified(h map[string]string) caller {
	return caller{kind: "none", cred: presents(h)}
}

// presents returns the header of presented that is in h.
func presents(h map[string]string) string {
	for name, value := range h {
		for _, p := range presented {
			if strings.EqualFold(name+": "+value, p) && strings.HasSuffix(p, value) {
				return p
			}
		}
	}
	return ""
}

func httpAPICaller(ev events.APIGatewayV2HTTPRequest) caller {
	a, cert := ev.RequestContext.Authorizer, &ev.RequestContext.Authentication.ClientCert
	switch {
	case a == nil && cert.SubjectDN != "":
		return caller{kind: "cert", a: cert.IssuerDN, b: cert.SubjectDN}
	case a == nil:
		return unverified(ev.Headers)
	case a.JWT != nil:
		return caller{kind: "jwt", a: a.JWT.Claims["iss"], b: a.JWT.Claims["sub"]}
	case a.IAM != nil && a.IAM.CognitoIdentity.IdentityID != "":
		return caller{kind: "pool", a: a.IAM.CognitoIdentity.IdentityPoolID, b: a.IAM.CognitoIdentity.IdentityID}
	case a.IAM != nil:
		return caller{kind: "iam", b: a.IAM.UserARN}
	}
	if id, ok := a.Lambda["principalId"].(string); ok {
		return caller{kind: "lambda", a: ev.RequestContext.APIID, b: id}
	}
	return caller{kind: "unnamed"}
}

func restCaller(ev events.APIGatewayProxyRequest) caller {
	rc := &ev.RequestContext
	claims, _ := rc.Authorizer["claims"].(map[string]any)
	text := func(v any) string { s, _ := v.(string); return s }
	switch {
	case claims != nil:
		return caller{kind: "jwt", a: text(claims["iss"]), b: text(claims["sub"])}
	case rc.Authorizer["principalId"] != nil:
		return caller{kind: "lambda", a: rc.APIID, b: text(rc.Authorizer["principalId"])}
	case rc.Identity.CognitoIdentityID != "":
		return caller{kind: "pool", a: rc.Identity.CognitoIdentityPoolID, b: rc.Identity.CognitoIdentityID}
	case rc.Identity.UserArn != "":
		return caller{kind: "iam", b: rc.Identity.UserArn}
	case rc.Identity.APIKeyID != "":
		return caller{kind: "apikey", b: rc.Identity.APIKeyID}
	case rc.Identity.ClientCert != nil:
		return caller{kind: "cert", a: rc.Identity.ClientCert.IssuerDN, b: rc.Identity.ClientCert.SubjectDN}
	}
	return unverified(ev.Headers)
}

func urlCaller(ev events.LambdaFunctionURLRequest) caller {
	if a := ev.RequestContext.Authorizer; a != nil && a.IAM != nil {
		return caller{kind: "iam", b: a.IAM.UserARN}
	}
	return unverified(ev.Headers)
}

// note is the work of events without HTTP.
type note struct {
	ID   string `json:"id,omitempty"`
	Work string `json:"work"`
}

type appSync struct {
	Arguments struct {
		Key  string `json:"key"`
		Work string `json:"work"`
	} `json:"arguments"`
	Identity struct {
		Issuer string `json:"issuer"`
		Sub    string `json:"sub"`
	} `json:"identity"`
	Info struct {
		FieldName      string `json:"fieldName"`
		ParentTypeName string `json:"parentTypeName"`
	} `json:"info"`
}

type stateTask struct {
	Context struct {
		Execution struct {
			ID string `json:"Id"`
		}
		State struct{ Name string }
	} `json:"context"`
	Work string `json:"work"`
}

type rpc struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	ID      string `json:"id"`
	Params  note   `json:"params"`
}

// typedDoors adds the doors without HTTP.
func (w *world) typedDoors(e *idem.Engine, doors map[string]door) {
	function := func(ctx context.Context, kind string) caller {
		lc, _ := lambdacontext.FromContext(ctx)
		return caller{kind: kind, b: lc.InvokedFunctionArn, tenant: lc.TenantID}
	}
	doors["direct"] = door{lambda.Wrap(e, lambda.Direct[note, string](func(n note) (string, error) { return n.ID, nil }),
		func(ctx context.Context, n note) (string, error) { return w.text(ctx, function(ctx, "direct"), n.Work) }, named("direct")).Invoke}
	doors["appsync"] = door{lambda.Wrap(e, lambda.Direct[appSync, string](lambda.AppSyncKey("/key")), func(ctx context.Context, ev appSync) (string, error) {
		return w.text(ctx, w.known(ctx, caller{kind: "appsync", a: ev.Identity.Issuer, b: ev.Identity.Sub}), ev.Arguments.Work)
	}, named("appsync")).Invoke}
	doors["state"] = door{lambda.Wrap(e, lambda.Direct[stateTask, string](lambda.StateKey("/context")),
		func(ctx context.Context, ev stateTask) (string, error) {
			return w.text(ctx, function(ctx, "state"), ev.Work)
		}, named("state")).Invoke}
	doors["rpc"] = door{lambda.Wrap(e, lambda.Direct[rpc, string](lambda.BodyKey{Key: lambda.JSONRPCKey().Key}),
		func(ctx context.Context, ev rpc) (string, error) {
			return w.text(ctx, function(ctx, "rpc"), ev.Params.Work)
		}, named("rpc")).Invoke}
	doors["sqs"] = records(w, e, lambda.SQS, func(m events.SQSMessage) (string, string) { return m.EventSourceARN, m.Body })
	doors["sns"] = records(w, e, lambda.SNS, func(r events.SNSEventRecord) (string, string) { return r.SNS.TopicArn, r.SNS.Message })
	doors["eventbridge"] = records(w, e, lambda.EventBridge, func(ev events.EventBridgeEvent) (string, string) {
		var n note
		_ = json.Unmarshal(ev.Detail, &n) // empty, and so nobody's work
		return ev.Source, n.Work
	})
	doors["kinesis"] = records(w, e, lambda.Kinesis, func(r events.KinesisEventRecord) (string, string) {
		return r.EventSourceArn, string(r.Kinesis.Data)
	})
	doors["kafka"] = records(w, e, lambda.Kafka, func(r lambda.KafkaRecord) (string, string) { return r.Cluster + "/" + r.Topic, string(r.Data) })
	doors["dynamodb"] = records(w, e, lambda.DynamoDBStream, func(r events.DynamoDBEventRecord) (string, string) {
		return r.EventSourceArn, r.Change.NewImage["work"].String()
	})
	doors["s3"] = records(w, e, lambda.S3, func(r events.S3EventRecord) (string, string) {
		return r.S3.Bucket.Name, strings.TrimPrefix(r.S3.Object.ETag, "etag")
	})
}

func named(name string) func(*lambda.HandlerOptions) {
	return func(o *lambda.HandlerOptions) { o.Name = name }
}

// text is work for a door whose answers are text.
func (w *world) text(ctx context.Context, who caller, body string) (string, error) {
	r, err := w.work(ctx, who, bodyOf(body))
	if err == nil && r.status >= http.StatusBadRequest {
		err = errors.New("refused: " + r.body)
	}
	return r.body, err
}

// records wraps the handler for a batch. read returns a record's source and work.
func records[Ev, Rec, Re any](w *world, e *idem.Engine, b lambda.Batch[Ev, Rec, Re], read func(Rec) (source, body string)) door {
	b.Concurrency = 1
	b.Failed = func(context.Context, Rec, error) {}
	b.NotRun = b.Failed
	return door{lambda.WrapEach(e, b, func(ctx context.Context, rec Rec) error {
		v, _ := ctx.Value(visitKey{}).(*visit)
		lc, _ := lambdacontext.FromContext(ctx)
		source, body := read(rec)
		who := caller{kind: v.req.door, a: source, b: lc.InvokedFunctionArn, tenant: lc.TenantID}
		if who.kind == "sqs" {
			who.b = ""
		}
		_, err := w.text(ctx, who, body)
		return err
	}).Invoke}
}

// payloadOf makes the event of a request, as AWS would.
func payloadOf(s *script, r *request) []byte {
	if typed(r.door) {
		return encoded(typedEvent(s.callers[r.who], r))
	}
	c, body := s.callers[r.who], contents[r.content]
	method, path, query, text := body.method, body.path, body.query, body.body
	if r.status {
		method, path, query, text = http.MethodGet, apps[r.app].statusURL+url.PathEscape(r.key), "", ""
		if r.door == "httpapi" || r.door == "router" {
			path = apps[r.app].statusURL + r.key
		}
	}
	if r.base64 {
		text = base64.StdEncoding.EncodeToString([]byte(text))
	}
	// What a client can write into its headers names another caller.
	other := s.callers[r.forged]
	h := map[string]string{
		"X-Amzn-Oidc-Identity": other.b, "X-Amzn-Oidc-Data": "eyJhbGciOiJub25lIn0." + other.b, "X-Tenant-Id": other.tenant, "X-User": other.b,
		"Host": domain,
	}
	if name, value, ok := strings.Cut(c.cred, ": "); ok {
		h[name] = value
	}
	if r.key != "" && !r.status {
		h["Idempotency-Key"] = r.key
	}
	var params map[string]string
	if name, value, ok := strings.Cut(query, "="); ok {
		params = map[string]string{name: value}
	}
	switch r.door {
	case "rest":
		return encoded(restEvent(c, events.APIGatewayProxyRequest{
			Resource: path, Path: path, HTTPMethod: method, Headers: h, QueryStringParameters: params, Body: text, IsBase64Encoded: r.base64,
			RequestContext: events.APIGatewayProxyRequestContext{DomainName: domain, Stage: "prod"},
		}))
	case "alb":
		return encoded(events.ALBTargetGroupRequest{
			Path: path, HTTPMethod: method, Headers: h, QueryStringParameters: params, Body: text, IsBase64Encoded: r.base64,
			RequestContext: events.ALBTargetGroupRequestContext{ELB: events.ELBContext{TargetGroupArn: "arn:aws:elasticloadbalancing:x"}},
		})
	case "url":
		ev := events.LambdaFunctionURLRequest{Version: "2.0", RawPath: path, RawQueryString: query, Headers: h, Body: text, IsBase64Encoded: r.base64}
		ev.RequestContext.DomainName = urlDomain
		ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.Path = method, path
		if c.kind == "iam" {
			ev.RequestContext.Authorizer = &events.LambdaFunctionURLRequestContextAuthorizerDescription{
				IAM: &events.LambdaFunctionURLRequestContextAuthorizerIAMDescription{UserARN: c.b},
			}
		}
		return encoded(ev)
	}
	ev := events.APIGatewayV2HTTPRequest{Version: "2.0", RouteKey: "$default", RawPath: path, RawQueryString: query, Headers: h, Body: text, IsBase64Encoded: r.base64}
	ev.RequestContext.DomainName, ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.Path = domain, method, path
	ev.RequestContext.Authorizer = httpAPIAuthorizer(c)
	switch c.kind {
	case "lambda":
		ev.RequestContext.APIID = c.a
	case "cert":
		cert := &ev.RequestContext.Authentication.ClientCert
		cert.IssuerDN, cert.SubjectDN = c.a, c.b
	}
	return encoded(ev)
}

func httpAPIAuthorizer(c caller) *events.APIGatewayV2HTTPRequestContextAuthorizerDescription {
	switch c.kind {
	case "jwt":
		return &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
			JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{Claims: map[string]string{"iss": c.a, "sub": c.b}},
		}
	case "iam", "pool":
		iam := &events.APIGatewayV2HTTPRequestContextAuthorizerIAMDescription{UserARN: c.b}
		if c.kind == "pool" {
			iam.UserARN = poolARN
			iam.CognitoIdentity.IdentityPoolID, iam.CognitoIdentity.IdentityID = c.a, c.b
		}
		return &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{IAM: iam}
	case "lambda":
		return &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"principalId": c.b, "sub": "common"}}
	case "unnamed":
		return &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{Lambda: map[string]any{"role": c.b}}
	}
	return nil
}

// poolARN is the same for all users of an identity pool.
const poolARN = "arn:aws:sts::111111111111:assumed-role/Pool/CognitoIdentityCredentials"

func restEvent(c caller, ev events.APIGatewayProxyRequest) events.APIGatewayProxyRequest {
	rc := &ev.RequestContext
	switch c.kind {
	case "jwt":
		rc.Authorizer = map[string]any{"claims": map[string]any{"iss": c.a, "sub": c.b}}
	case "lambda":
		rc.APIID, rc.Authorizer = c.a, map[string]any{"principalId": c.b, "sub": "common"}
	case "cert":
		rc.Identity.ClientCert = &events.APIGatewayCustomAuthorizerRequestTypeRequestIdentityClientCert{IssuerDN: c.a, SubjectDN: c.b}
	case "iam":
		rc.Identity.UserArn = c.b
	case "pool":
		rc.Identity.UserArn, rc.Identity.CognitoIdentityPoolID, rc.Identity.CognitoIdentityID = poolARN, c.a, c.b
	case "apikey":
		rc.Identity.APIKeyID = c.b
	}
	return ev
}

func typedEvent(c caller, r *request) any {
	work := contents[r.content].body
	switch r.door {
	case "direct":
		return note{r.key, work}
	case "appsync":
		var ev appSync
		ev.Arguments.Key, ev.Arguments.Work, ev.Identity.Issuer, ev.Identity.Sub = r.key, work, c.a, c.b
		ev.Info.FieldName, ev.Info.ParentTypeName = "pay", "Mutation"
		return ev
	case "state":
		var ev stateTask
		ev.Context.Execution.ID, ev.Context.State.Name, ev.Work = r.key, "Pay", work
		return ev
	case "rpc":
		return rpc{"2.0", "pay", r.key, note{Work: work}}
	case "sqs":
		return events.SQSEvent{Records: []events.SQSMessage{{
			MessageId: "m-" + r.key, Body: work, EventSource: "aws:sqs", EventSourceARN: c.a,
			MessageAttributes: map[string]events.SQSMessageAttribute{lambda.KeyAttribute: {DataType: "String", StringValue: &r.key}},
		}}}
	case "sns":
		return events.SNSEvent{Records: []events.SNSEventRecord{{EventSource: "aws:sns", SNS: events.SNSEntity{
			MessageID: "m-" + r.key, Message: work, TopicArn: c.a,
			MessageAttributes: map[string]any{lambda.KeyAttribute: map[string]any{"Type": "String", "Value": r.key}},
		}}}}
	case "eventbridge":
		return events.EventBridgeEvent{
			Version: "0", ID: r.key, Source: c.a, DetailType: "Paid", AccountID: "111111111111", Region: "eu-central-1", Detail: encoded(note{Work: work}),
		}
	case "kinesis":
		return events.KinesisEvent{Records: []events.KinesisEventRecord{{
			EventID: r.key, EventSource: "aws:kinesis", EventSourceArn: c.a,
			Kinesis: events.KinesisRecord{Data: []byte(work), PartitionKey: "p", SequenceNumber: "1"},
		}}}
	case "kafka":
		cluster, topic, _ := strings.Cut(c.a, "/")
		return events.KafkaEvent{EventSource: "aws:kafka", EventSourceARN: cluster, Records: map[string][]events.KafkaRecord{topic + "-0": {{
			Topic: topic, Value: base64.StdEncoding.EncodeToString([]byte(work)), Timestamp: events.MilliSecondsEpochTime{Time: time.UnixMilli(1)},
			Headers: []map[string]events.JSONNumberBytes{{lambda.KeyAttribute: []byte(r.key)}},
		}}}}
	case "dynamodb":
		return json.RawMessage(`{"Records":[{"eventID":` + string(encoded(r.key)) + `,"eventName":"INSERT","eventSource":"aws:dynamodb","eventSourceARN":` +
			string(encoded(c.a)) + `,"dynamodb":{"SequenceNumber":"1","Keys":{"pk":{"S":"x"}},"NewImage":{"work":{"S":` + string(encoded(work)) + `}}}}]}`)
	}
	ev := events.S3EventRecord{EventSource: "aws:s3", EventName: "ObjectCreated:Put"}
	ev.S3.Bucket.Name, ev.S3.Object.Key, ev.S3.Object.Sequencer, ev.S3.Object.ETag = c.a, "object", "s"+r.key, "etag"+work
	return events.S3Event{Records: []events.S3EventRecord{ev}}
}

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
