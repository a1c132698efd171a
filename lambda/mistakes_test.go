package lambda_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/webhook"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// panicOf is what f panics with, "" for nothing.
func panicOf(f func()) (said string) {
	defer func() {
		if v := recover(); v != nil {
			said = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

// anEngine is an engine with a store of its own.
func anEngine(optFns ...func(*idem.Options)) *idem.Engine {
	return idem.New(new(idem.MemoryStore), append([]func(*idem.Options){callertest.Anybody}, optFns...)...)
}

func noContent(context.Context, v2Request) (re v2Response, _ error) { return re, nil }

// Mistakes in a program show at cold start, by a panic that names them.
func TestMistakesPanic(t *testing.T) {
	t.Parallel()
	type (
		api  = lambda.Adapter[v2Request, v2Response]
		sqs  = queueBatch
		opts = func(*lambda.HandlerOptions)
	)
	anything := func(context.Context, webhook.Event) error { return nil }
	endpoint := webhook.New(&idem.MemoryStore{}, "e", trusting{}, anything)
	typed := lambda.Direct[int, int](func(int) (string, error) { return "", nil })
	noRequest, noResponse, noReply := lambda.HTTPAPI, lambda.HTTPAPI, lambda.HTTPAPI
	noRequest.Request, noResponse.Response, noReply.Reply = nil, nil, nil
	wrap := func(a api, optFns ...opts) func() { return func() { lambda.Wrap(anEngine(), a, noContent, optFns...) } }
	message := func(context.Context, events.SQSMessage) error { return nil }
	batch := func(edit func(*sqs)) func() {
		return func() { b := lambda.SQS; edit(&b); lambda.WrapEach(anEngine(), b, message) }
	}
	key := func(k lambda.BodyKey) func() {
		return func() { lambda.WrapEach(anEngine(), lambda.SQS.WithBodyKey(k), message) }
	}
	keepsNo200 := func(o *idem.Options) { o.Stored = func(r idem.Response) bool { return r.Status == 201 } }
	router := func(use func(*lambda.Router[v2Request, v2Response])) func() {
		return func() { use(lambda.NewRouter(lambda.HTTPAPI)) }
	}
	keyed := func(r *lambda.Router[v2Request, v2Response], pattern string, optFns ...opts) {
		r.Keyed(pattern, anEngine(), noContent, optFns...)
	}
	for name, tc := range map[string]struct {
		says string
		make func()
	}{
		"Wrap: no engine":   {"Wrap: engine", func() { lambda.Wrap(nil, lambda.HTTPAPI, noContent) }},
		"Wrap: no handler":  {"Wrap: handler", func() { lambda.Wrap(anEngine(), lambda.HTTPAPI, nil) }},
		"Wrap: no adapter":  {"Wrap: the adapter", wrap(api{})},
		"Wrap: no Request":  {"Wrap: the adapter", wrap(noRequest)},
		"Wrap: no Response": {"Wrap: the adapter", wrap(noResponse)},
		"Wrap: no Reply":    {"Wrap: the adapter", wrap(noReply)},
		"Wrap: a long name": {"256 bytes", wrap(lambda.HTTPAPI, named(strings.Repeat("n", 257)))},
		"Wrap: no result is kept": {"doesn't keep 200", func() {
			lambda.Wrap(anEngine(keepsNo200), typed, func(context.Context, int) (int, error) { return 0, nil })
		}},
		"Direct: no key":              {"Direct: key", func() { lambda.Direct[order, receipt, func(order) (string, error)](nil) }},
		"Direct: a key of nothing":    {"lambda: ", func() { lambda.Direct[order, receipt](lambda.BodyKey{}) }},
		"WrapEach: no engine":         {"WrapEach: engine", func() { lambda.WrapEach(nil, lambda.SQS, message) }},
		"WrapEach: no handler":        {"WrapEach: handler", func() { lambda.WrapEach(anEngine(), lambda.SQS, nil) }},
		"WrapEach: no batch":          {"WrapEach: the batch", func() { lambda.WrapEach(anEngine(), sqs{}, message) }},
		"WrapEach: no Records":        {"WrapEach: the batch", batch(func(b *sqs) { b.Records = nil })},
		"WrapEach: no ID":             {"WrapEach: the batch", batch(func(b *sqs) { b.ID = nil })},
		"WrapEach: no Key":            {"WrapEach: the batch", batch(func(b *sqs) { b.Key = nil })},
		"WrapEach: no Request":        {"WrapEach: the batch", batch(func(b *sqs) { b.Request = nil })},
		"WrapEach: no worker":         {"WrapEach: the batch", batch(func(b *sqs) { b.Concurrency = -1 })},
		"WrapEach: no time":           {"WrapEach: the batch", batch(func(b *sqs) { b.RecordTimeout = -1 })},
		"WrapEach: body of nothing":   {"WrapEach: the batch", batch(func(b *sqs) { b.Request = nil; *b = b.WithBodyKey(lambda.JSONKey("/a")) })},
		"WrapEach: no body key":       {"WrapEach: the batch", key(lambda.BodyKey{})},
		"WrapEach: no result is kept": {"doesn't keep 200", func() { lambda.WrapEach(anEngine(keepsNo200), lambda.SQS, message) }},
		"WrapHandler: no handler":     {"WrapHandler: handler", func() { lambda.WrapHandler(anEngine(), lambda.HTTPAPI, nil) }},
		"WrapHandler: no engine":      {"Wrap: engine", func() { lambda.WrapHandler(nil, lambda.HTTPAPI, http.NotFoundHandler()) }},
		"WrapHandler: no Request":     {"lambda: Wrap", func() { lambda.WrapHandler(anEngine(), noRequest, http.NotFoundHandler()) }},
		"WrapHandler: no adapter":     {"lambda: Wrap", func() { lambda.WrapHandler(anEngine(), api{}, http.NotFoundHandler()) }},
		"WrapHandler: no HTTP":        {"WrapHandler: the adapter", func() { lambda.WrapHandler(anEngine(), typed, http.NotFoundHandler()) }},
		"StatusHandler: no engine":    {"StatusHandler: an engine", func() { lambda.StatusHandler(nil, lambda.HTTPAPI) }},
		"StatusHandler: no Request":   {"StatusHandler: an engine", func() { lambda.StatusHandler(anEngine(), noRequest) }},
		"StatusHandler: no Reply":     {"StatusHandler: an engine", func() { lambda.StatusHandler(anEngine(), noReply) }},
		"StatusHandler: no HTTP":      {"StatusHandler: an engine", func() { lambda.StatusHandler(anEngine(), typed) }},
		"Webhook: no endpoint":        {"Webhook: an adapter", func() { lambda.Webhook(lambda.HTTPAPI, nil) }},
		"Webhook: no Request":         {"Webhook: an adapter", func() { lambda.Webhook(noRequest, endpoint) }},
		"Webhook: no Reply":           {"Webhook: an adapter", func() { lambda.Webhook(noReply, endpoint) }},
		"Webhook: no HTTP":            {"Webhook: an adapter", func() { lambda.Webhook(typed, endpoint) }},
		"Router: no Request":          {"NewRouter: an adapter", func() { lambda.NewRouter(noRequest) }},
		"Router: no Response":         {"NewRouter: an adapter", func() { lambda.NewRouter(noResponse) }},
		"Router: no Reply":            {"NewRouter: an adapter", func() { lambda.NewRouter(noReply) }},
		"Router: no HTTP":             {"NewRouter: an adapter", func() { lambda.NewRouter(typed) }},
		"Router: no handler":          {"Router: handler", router(func(r *lambda.Router[v2Request, v2Response]) { r.Route("/a", nil) })},
		"Router: no keyed handler":    {"handler is nil", router(func(r *lambda.Router[v2Request, v2Response]) { r.Keyed("/a", anEngine(), nil) })},
		"Router: no engine":           {"engine is nil", router(func(r *lambda.Router[v2Request, v2Response]) { r.Keyed("/a", nil, noContent) })},
		"Router: no pattern":          {"pattern", router(func(r *lambda.Router[v2Request, v2Response]) { r.Route("", noContent) })},
		"Router: a bad pattern":       {"wildcard", router(func(r *lambda.Router[v2Request, v2Response]) { r.Route("POST /{", noContent) })},
		"Router: two of a pattern":    {"pattern", router(func(r *lambda.Router[v2Request, v2Response]) { r.Route("/a", noContent); keyed(r, "/a") })},
		"Router: an ambiguous pair": {"pattern", router(func(r *lambda.Router[v2Request, v2Response]) {
			r.Route("/a/{x}", noContent)
			r.Route("/{y}/b", noContent)
		})},
		"Router: two of a name": {"another route's", router(func(r *lambda.Router[v2Request, v2Response]) { keyed(r, "/a", named("x")); keyed(r, "/b", named("x")) })},
		"Router: no name":       {"has no name", router(func(r *lambda.Router[v2Request, v2Response]) { keyed(r, "/a", named("")) })},
		"Router: a long name":   {"256 bytes", router(func(r *lambda.Router[v2Request, v2Response]) { keyed(r, "/a", named(strings.Repeat("x", 257))) })},
		"Router: an accepted name": {"another route's", router(func(r *lambda.Router[v2Request, v2Response]) {
			keyed(r, "/a", func(o *lambda.HandlerOptions) { o.Accepts = []store.HandlerID{{Name: "/b"}} })
			keyed(r, "/b")
		})},
		"JSONKey: nothing":        {"JSON Pointer", func() { lambda.JSONKey("") }},
		"JSONKey: no slash":       {"JSON Pointer", func() { lambda.JSONKey("order") }},
		"JSONKey: JSONPath":       {"JSON Pointer", func() { lambda.JSONKey("$.order.id") }},
		"JSONKey: a bad escape":   {"JSON Pointer", func() { lambda.JSONKey("/a~2") }},
		"JSONKey: half an escape": {"JSON Pointer", func() { lambda.JSONKey("/a~") }},
		"JSONKey: the second":     {"JSON Pointer", func() { lambda.JSONKey("/a", "b") }},
		"JSONRPCKey":              {"JSON Pointer", func() { lambda.JSONRPCKey("a") }},
		"MCPToolKey":              {"JSON Pointer", func() { lambda.MCPToolKey("") }},
		"AppSyncKey":              {"JSON Pointer", func() { lambda.AppSyncKey("key") }},
		"AppSyncKey: its caller":  {"JSON Pointer", func() { lambda.AppSyncKey("/key", "sub") }},
		"StateKey":                {"JSON Pointer", func() { lambda.StateKey("") }},
		"Comparing":               {"JSON Pointer", func() { lambda.JSONKey("/a").Comparing("a") }},
		"Comparing: nothing":      {"no pointer", func() { lambda.JSONKey("/a").Comparing() }},
	} {
		if said := panicOf(tc.make); !strings.Contains(said, tc.says) {
			t.Errorf("%s: panicked with %q, want %q in it", name, said, tc.says)
		}
	}
	// A name may have 256 bytes, and an engine for HTTP may keep no 200.
	lambda.Wrap(anEngine(keepsNo200), lambda.HTTPAPI, noContent, named(strings.Repeat("n", 256)))
}

// Handlers of one kind that are not told apart would take each other's work for done; and on a
// Resumable engine an abandoned request would end in the wrong one.
func TestHandlersThatShareKeysPanic(t *testing.T) {
	t.Parallel()
	direct := func(e *idem.Engine, optFns ...func(*lambda.HandlerOptions)) {
		lambda.Wrap(e, lambda.Direct[order, string](orderID), func(context.Context, order) (string, error) { return "", nil }, optFns...)
	}
	scoped := func(e *idem.Engine, optFns ...func(*lambda.HandlerOptions)) {
		own := func(o *lambda.DirectOptions[order]) {
			o.Scope = func(context.Context, order) (string, error) { return "acme", nil }
		}
		lambda.Wrap(e, lambda.Direct[order, string](orderID, own), func(context.Context, order) (string, error) { return "", nil }, optFns...)
	}
	topic := func(e *idem.Engine, name string) {
		lambda.WrapEach(e, lambda.SNS.WithName(name), func(context.Context, events.SNSEventRecord) error { return nil })
	}
	queue := func(e *idem.Engine) {
		lambda.WrapEach(e, lambda.SQS, func(context.Context, events.SQSMessage) error { return nil })
	}
	http := func(e *idem.Engine, names ...string) {
		for _, name := range names {
			lambda.Wrap(e, lambda.HTTPAPI, noContent, named(name))
		}
	}
	formerly := func(name, former string) func(*lambda.HandlerOptions) {
		return func(o *lambda.HandlerOptions) { o.Name, o.Operation = name, former }
	}
	resumable := func(o *idem.Options) { o.Function, o.Resumable = "f", true }
	for name, tc := range map[string]struct {
		wrap func(e *idem.Engine)
		want string // in the panic; "" for none
		opt  []func(*idem.Options)
	}{
		"two Direct without a name":           {func(e *idem.Engine) { direct(e); direct(e) }, "HandlerOptions.Name", nil},
		"two Direct with one name":            {func(e *idem.Engine) { direct(e, named("a")); direct(e, named("a")) }, `"a"`, nil},
		"one Direct has the other's former":   {func(e *idem.Engine) { direct(e, named("a")); direct(e, formerly("b", "a")) }, `"a"`, nil},
		"two Direct that had no name":         {func(e *idem.Engine) { direct(e); direct(e, formerly("b", lambda.Unnamed)) }, "without a name", nil},
		"a name that is too long":             {func(e *idem.Engine) { direct(e, formerly("b", strings.Repeat("x", 257))) }, "256 bytes", nil},
		"one Direct has a name":               {func(e *idem.Engine) { direct(e); direct(e, named("a")) }, "", nil},
		"a scope of its own, without a name":  {func(e *idem.Engine) { scoped(e) }, "HandlerOptions.Name", nil},
		"a scope of its own, with a name":     {func(e *idem.Engine) { scoped(e, named("a")) }, "", nil},
		"a scope of its own, from before":     {func(e *idem.Engine) { scoped(e, formerly("", lambda.Unnamed)) }, "", nil},
		"two topics without a name":           {func(e *idem.Engine) { topic(e, ""); topic(e, "") }, "Batch.WithName", nil},
		"two topics with one name":            {func(e *idem.Engine) { topic(e, "a"); topic(e, "a") }, `"a"`, nil},
		"two topics with names":               {func(e *idem.Engine) { topic(e, "a"); topic(e, "b") }, "", nil},
		"a topic with a name that's too long": {func(e *idem.Engine) { topic(e, strings.Repeat("x", 257)) }, "256 bytes", nil},
		"a queue, a topic, a Direct":          {func(e *idem.Engine) { queue(e); topic(e, "a"); direct(e, named("a")) }, "", nil},
		"two for HTTP":                        {func(e *idem.Engine) { http(e, "", "") }, "", nil}, // the path is in the fingerprint
		"resumable without a name":            {func(e *idem.Engine) { http(e, "") }, "no name", []func(*idem.Options){resumable}},
		"resumable, two names":                {func(e *idem.Engine) { http(e, "charges", "refunds") }, "", []func(*idem.Options){resumable}},
		"resumable, one name twice":           {func(e *idem.Engine) { http(e, "charges", "charges") }, `"charges"`, []func(*idem.Options){resumable}},
	} {
		if said := panicOf(func() { tc.wrap(anEngine(tc.opt...)) }); (said != "") != (tc.want != "") || !strings.Contains(said, tc.want) {
			t.Errorf("%s: panicked with %q, want %q", name, said, tc.want)
		}
		off := idem.New(nil, callertest.Anybody, func(o *idem.Options) { o.Mode = idem.ModeOff })
		if said := panicOf(func() { tc.wrap(off) }); said != "" && !strings.Contains(said, "256") && !strings.Contains(said, "DirectOptions.Scope") {
			t.Errorf("%s: a disabled engine keeps nothing apart: %q", name, said)
		}
	}
}

// What a program declares keyed is keyed, or panics at cold start.
func TestRouterKeysWhatItDeclares(t *testing.T) {
	t.Parallel()
	type opt = []func(*idem.Options)
	put := func(o *idem.Options) { o.Methods = []string{"POST", "PUT"} }
	off := func(o *idem.Options) { o.Mode = idem.ModeOff }
	for _, tc := range []struct {
		pattern string
		opt     opt
		says    string // of the panic; "": none
	}{
		{"POST /wallets", nil, ""},
		{"PATCH /wallets/{id}", nil, ""},
		{"/wallets/{id}", nil, ""},
		{"PUT /wallets/{id}", nil, "Options.Methods"},
		{"DELETE /wallets/{id}", nil, "Options.Methods"},
		{"GET /wallets/{id}", nil, "Options.Methods"},
		{"PUT /wallets/{id}", opt{put}, ""},
		{"PATCH /wallets/{id}", opt{put}, "Options.Methods"},
		{"DELETE /wallets/{id}", opt{idem.Stripe}, ""},
		{"PATCH /wallets/{id}", opt{idem.StripeV1}, "Options.Methods"},
		{"PUT /wallets/{id}", opt{off}, ""},
	} {
		said := panicOf(func() {
			lambda.NewRouter(lambda.HTTPAPI).Keyed(tc.pattern, idem.New(new(idem.MemoryStore), tc.opt...), noContent)
		})
		if (said != "") != (tc.says != "") || !strings.Contains(said, tc.says) {
			t.Errorf("%s with %d options: panicked with %q, want %q", tc.pattern, len(tc.opt), said, tc.says)
		}
	}
}
