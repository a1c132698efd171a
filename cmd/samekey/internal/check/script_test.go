package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// re is an answer; headers are names and values.
func re(status int, body string, headers ...string) *answer {
	a := &answer{status: status, body: []byte(body), header: make(http.Header)}
	for i := 0; i < len(headers); i += 2 {
		a.header.Add(headers[i], headers[i+1])
	}
	return a
}

// script answers requests in this order, notes them, and breaks off the connection for a nil
// and after the last.
type script struct {
	mu      sync.Mutex
	answers []*answer
	sent    []string
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	line := r.Method + " " + r.URL.RequestURI()
	for _, k := range r.Header["Idempotency-Key"] {
		line += " " + strings.ReplaceAll(k, "p-n-", "")
	}
	for _, name := range []string{"Authorization", "Origin", "Request-Id", "Access-Control-Request-Method", "Access-Control-Request-Headers"} {
		if v := r.Header.Get(name); v != "" {
			line += " " + name + ":" + strings.ReplaceAll(v, "p-n-", "")
		}
	}
	if len(body) > 0 {
		line += " " + string(body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, line)
	if len(s.answers) == 0 || s.answers[0] == nil {
		s.answers = s.answers[min(1, len(s.answers)):]
		return nil, io.EOF
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	return &http.Response{StatusCode: a.status, Header: a.header.Clone(), Body: io.NopCloser(strings.NewReader(string(a.body))), Request: r}, nil
}

// scene is a check on its own: what came before, how the API answers, and what is told.
type scene struct {
	contract string // "" is Default
	template func(*Template)
	before   func(*examination)
	answers  []*answer
	sent     []string // nil: not compared
	want     []string
}

// plays plays scenes of a check, by their names.
func plays(t *testing.T, check string, scenes map[string]scene) {
	t.Helper()
	for name, s := range scenes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := &script{answers: s.answers}
				tp := Template{URL: "http://host/orders?q=1", Body: []byte(`{"a":1}`), OtherBody: []byte(`{"a":2}`), RefusedBody: []byte(`{}`), OtherPath: "/refunds", OtherMethod: "PUT", OtherCaller: http.Header{"Authorization": {"omar"}}}
				if s.template != nil {
					s.template(&tp)
				}
				plan, err := Make(tp, func(o *Options) {
					o.Contract, o.Prefix, o.Name, o.Racers, o.Transport = s.contract, "p-", "n", 2, api
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), plan.opt.Total, errTotal)
				defer cancel()
				e := plan.examination()
				e.first, e.again, e.exact, e.firm = re(201, "first answer"), re(201, "first answer", "Idempotent-Replayed", "true"), true, true
				e.first.at = time.Now()
				if s.before != nil {
					s.before(e)
				}
				i := slices.IndexFunc(plan.checks, func(c examined) bool { return c.name == check })
				err = plan.checks[i].run(e, ctx)
				if diff := cmp.Diff(s.want, e.told(err)); diff != "" {
					t.Errorf("told (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(s.sent, api.sent); s.sent != nil && diff != "" {
					t.Errorf("sent (-want +got):\n%s", diff)
				}
				if len(api.answers) > 0 {
					t.Errorf("%d answers were not asked for", len(api.answers))
				}
			})
		})
	}
}

// told is all that an examination has found.
func (e *examination) told(err error) (all []string) {
	for _, f := range e.found {
		all = append(all, fmt.Sprintf("%s %s: %s", f.Rule, strings.Join(slices.Sorted(maps.Keys(f.Breaks)), ","), f.Seen))
	}
	for _, a := range e.blamed {
		all = append(all, fmt.Sprintf("blamed: %d %s", a.status, a.code))
	}
	if e.busy {
		all = append(all, "busy")
	}
	for _, n := range e.notes {
		all = append(all, "note: "+n)
	}
	if err != nil {
		all = append(all, "why: "+err.Error())
	}
	for _, name := range slices.Sorted(maps.Keys(e.steady)) {
		if e.steady[name] {
			all = append(all, "steady: "+name)
		}
	}
	return all
}

const (
	cut      = "why: host closed the connection before its answer was complete"
	infirm   = "why: the API doesn't give the first answer again"
	nobody   = "note: No request was answered while another one with its key was in flight: the API is fast, or it waits."
	everyone = " default,ietf,stripe: "
	both     = " default,stripe: "
)

func unfirm(e *examination) { e.exact, e.firm = false, false }

func inexact(e *examination) { e.exact = false }

func TestReplayScenes(t *testing.T) {
	t.Parallel()
	sent := []string{`POST /orders?q=1 first {"a":1}`}
	echo := func(status int, body string, headers ...string) *answer {
		return re(status, body, append(headers, "Idempotency-Key", "p-n-first")...)
	}
	first := func(headers ...string) func(*examination) {
		return func(e *examination) {
			e.first, e.again, e.exact, e.firm = echo(201, "first answer", headers...), nil, false, false
		}
	}
	replay := func(status int, body string, headers ...string) []*answer {
		return []*answer{echo(status, body, append(headers, "Idempotent-Replayed", "true")...)}
	}
	plays(t, "replay", map[string]scene{
		"right":        {before: first(), answers: replay(201, "first answer"), sent: sent},
		"lost":         {before: first(), answers: nil, sent: sent, want: []string{cut}},
		"failed":       {before: first(), answers: []*answer{re(500, "first answer")}, want: []string{"replay-differs" + everyone + "first 201 with 12 bytes, then 500 with 12 bytes that differ"}},
		"ran":          {before: first("Location", "/1"), answers: []*answer{re(201, "another answer")}, want: []string{"replay-differs" + everyone + "first 201 with 12 bytes, then 201 with 14 bytes that differ"}},
		"other bytes":  {before: first("Location", "/1"), answers: replay(201, "first  answer"), want: []string{"replay-differs" + everyone + "first 201 with 12 bytes, then 201 with 13 bytes that differ", "replay-headers default: Location is missing in the replay"}},
		"other status": {before: first(), answers: replay(200, "first answer"), want: []string{"replay-status" + everyone + "first 201, then 200"}},
		"other header": {before: first("Location", "/1", "Date", "1"), answers: replay(201, "first answer", "Location", "/2"), want: []string{"replay-headers default: Location differs"}},
		"unmarked":     {before: first(), answers: []*answer{echo(201, "first answer")}, want: []string{`replay-unmarked` + both + `Idempotent-Replayed is "" first, then ""`}},
		"first marked": {before: first("Idempotent-Replayed", "true"), answers: []*answer{echo(201, "first answer")}, want: []string{`replay-unmarked` + both + `Idempotent-Replayed is "true" first, then ""`}},
		"no echo":      {before: first(), answers: []*answer{re(201, "first answer", "Idempotent-Replayed", "true")}, want: []string{`key-unechoed default: sent "p-n-first", got "" back`}},
		"seen by pages": {
			template: func(tp *Template) { tp.Origin = "https://shop" }, before: first(), answers: replay(201, "first answer"),
			sent: []string{`POST /orders?q=1 first Origin:https://shop {"a":1}`},
		},
	})
}

// What a replay was is kept for the checks after it.
func TestReplayIsKept(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][2]bool{"first answer": {true, true}, "first  answer": {false, true}} {
		api := &script{answers: []*answer{re(201, "first answer"), re(201, body, "Idempotent-Replayed", "true")}}
		plan, err := Make(Template{URL: "http://host", NoBody: true}, func(o *Options) { o.Transport = api })
		if err != nil {
			t.Fatal(err)
		}
		e := plan.examination()
		err = errors.Join(e.begin(t.Context()), e.replay(t.Context()))
		if err != nil || [2]bool{e.exact, e.firm} != want || !slices.Equal(e.answers, []*answer{e.first, e.again}) || string(e.again.body) != body {
			t.Errorf("%v, %t, %t, %v", err, e.exact, e.firm, e.answers)
		}
	}
}

func TestLifetimeScenes(t *testing.T) {
	t.Parallel()
	times := func(first, again string) func(*examination) {
		return func(e *examination) {
			date := func(s string) string {
				if d, err := time.ParseDuration(s); err == nil {
					return e.first.at.Add(d).UTC().Format(http.TimeFormat)
				}
				return s
			}
			e.first.header.Set("Idempotency-Expires", date(first))
			e.again.header.Set("Idempotency-Expires", date(again))
		}
	}
	wrong := func(says string) []string { return []string{"lifetime-wrong default: " + says} }
	plays(t, "lifetime", map[string]scene{
		"untold":          {want: []string{"lifetime-untold default: there is no Idempotency-Expires"}},
		"the same":        {before: times("1h", "1h")},
		"a little moved":  {before: times("1h", "3598s")},
		"moved":           {before: times("1h", "3603s"), want: wrong(`first "Sat, 01 Jan 2000 01:00:00 GMT", then "Sat, 01 Jan 2000 01:00:03 GMT"`)},
		"moved back":      {before: times("1h", "3597s"), want: wrong(`first "Sat, 01 Jan 2000 01:00:00 GMT", then "Sat, 01 Jan 2000 00:59:57 GMT"`)},
		"lost":            {before: times("1h", ""), want: wrong(`first "Sat, 01 Jan 2000 01:00:00 GMT", then ""`)},
		"no date":         {before: times("86400", "86400"), want: wrong(`Idempotency-Expires is "86400"`)},
		"a minute ago":    {before: times("-1m", "-1m")},
		"two minutes ago": {before: times("-2m", "-2m"), want: wrong(`Idempotency-Expires is "Fri, 31 Dec 1999 23:58:00 GMT"`)},
		"not again":       {before: func(e *examination) { times("1h", "")(e); e.again = nil }},
		"not firm":        {before: func(e *examination) { times("1h", "")(e); unfirm(e) }},
	})
}

func TestQuotedScenes(t *testing.T) {
	t.Parallel()
	quotes := func(e *examination) { e.quotes = true }
	bare, quoted := []string{`POST /orders?q=1 first {"a":1}`}, []string{`POST /orders?q=1 "first" {"a":1}`}
	plays(t, "quoted", map[string]scene{
		"the same":       {answers: []*answer{re(201, "first answer")}, sent: quoted},
		"the same, bare": {before: quotes, answers: []*answer{re(201, "first answer")}, sent: bare},
		"ran":            {answers: []*answer{re(201, "x")}, want: []string{"quoted-another default: the first answer was 201 with 12 bytes, this is 201 with 1 bytes: it ran again"}},
		"refused":        {answers: []*answer{re(400, "x")}, want: []string{"quoted-refused default,ietf: 400"}},
		"bare refused":   {before: quotes, answers: []*answer{re(422, "x")}, want: []string{"bare-refused" + both + "422"}},
		"failed":         {answers: []*answer{re(500, "x")}},
		"failed, bare":   {before: quotes, answers: []*answer{re(500, "x")}},
		"lost":           {want: []string{cut}},
		"infirm":         {before: unfirm, want: []string{infirm}},
	})
	plays(t, "kept", map[string]scene{
		"kept":         {answers: []*answer{re(201, "first answer")}, sent: bare},
		"other status": {answers: []*answer{re(200, "first answer")}, want: []string{"kept-lost" + everyone + "the first answer was 201 with 12 bytes, this is 200 with 12 bytes"}},
		"other body":   {answers: []*answer{re(201, "x")}, want: []string{"kept-lost" + everyone + "the first answer was 201 with 12 bytes, this is 201 with 1 bytes"}},
		"lost":         {want: []string{cut}},
		"infirm":       {before: unfirm, want: []string{infirm}},
	})
}

func TestConcurrentScenes(t *testing.T) {
	t.Parallel()
	b, busy := re(201, "b"), re(409, "", "Retry-After", "1")
	blamed := "blamed: 409 idempotency_in_flight"
	same := "note: The answers to two different keys are the same bytes: a second run can't be told from a replay by its body."
	sent := slices.Repeat([]string{`POST /orders?q=1 concurrent {"a":1}`}, 3)
	failed := func(status int) *answer { return re(status, "b") }
	plays(t, "concurrent", map[string]scene{
		"waits":                {answers: []*answer{b, b, b}, sent: sent, want: []string{nobody}},
		"refuses":              {answers: []*answer{busy, b, b}, want: []string{blamed, "busy"}},
		"refuses badly":        {answers: []*answer{re(409, ""), b, b}, want: []string{`retry-after default: a 409 has Retry-After ""`, blamed, "busy"}},
		"is overloaded":        {answers: []*answer{re(503, "", "Retry-After", "1"), b, b}, want: []string{"busy", nobody}},
		"accepts":              {answers: []*answer{re(202, ""), b, b}},
		"accepts for all":      {answers: []*answer{re(202, "b"), re(202, "b"), re(202, "b")}, want: []string{nobody}},
		"loses one":            {answers: []*answer{nil, b, b}, want: []string{nobody}},
		"loses all":            {answers: []*answer{nil, nil, b}, want: []string{cut}},
		"fails":                {answers: []*answer{failed(500), b, b}, want: []string{"concurrent-failed" + everyone + "one of 2 got 500", nobody}},
		"ends failed":          {answers: []*answer{b, b, failed(500)}, want: []string{"concurrent-failed" + everyone + "afterwards the same request got 500", nobody}},
		"runs twice":           {answers: []*answer{re(201, "c"), b, b}, want: []string{"concurrent-twice" + everyone + "2 different answers to 2 of the same request", nobody}},
		"runs again":           {answers: []*answer{b, b, re(201, "c")}, want: []string{"concurrent-twice" + everyone + "2 different answers to 2 of the same request", nobody}},
		"infirm":               {before: unfirm, answers: []*answer{b, re(201, "c"), re(201, "first answer")}, want: []string{nobody}},
		"replays otherwise":    {before: inexact, answers: []*answer{re(201, "c", "Idempotent-Replayed", "true"), b, b}, want: []string{nobody}},
		"marked":               {answers: []*answer{re(201, "c", "Idempotent-Replayed", "true"), b, b}, want: []string{"concurrent-twice" + everyone + "2 different answers to 2 of the same request", nobody}},
		"not marked":           {before: inexact, answers: []*answer{re(201, "c"), b, b}, want: []string{"concurrent-twice" + everyone + "2 different answers to 2 of the same request", nobody}},
		"bodies alike":         {answers: []*answer{re(201, "first answer"), re(201, "first answer"), re(201, "first answer")}, want: []string{nobody, same}},
		"alike and failed":     {answers: []*answer{busy, busy, re(500, "first answer")}, want: []string{"concurrent-failed" + everyone + "afterwards the same request got 500", blamed, blamed, "busy"}},
		"late":                 {answers: []*answer{busy, busy, busy, re(503, "", "Retry-After", "1"), b}, want: []string{blamed, blamed, "busy"}},
		"later without a word": {answers: []*answer{b, b, re(409, ""), b}, want: []string{`retry-after default: a 409 has Retry-After ""`, "busy", nobody}},
		"never":                {answers: slices.Repeat([]*answer{busy}, 12), want: []string{"concurrent-failed" + everyone + "afterwards the same request got 409", blamed, blamed, "busy"}},
		"lost at last":         {answers: []*answer{b, b}, want: []string{cut}},
		"too long": {
			answers: []*answer{b, b, busy}, sent: sent, before: func(e *examination) { <-time.After(e.opt.Total - time.Second/2) },
			want: []string{"busy", "why: the examination has taken 5m0s, its limit"},
		},
	})
}

func TestOtherwiseScenes(t *testing.T) {
	t.Parallel()
	refusal := func(status int) *answer { return re(status, "no") }
	blamed := func(status int) string { return fmt.Sprintf("blamed: %d idempotency_conflict", status) }
	other := []string{`POST /orders?q=1 first {"a":2}`}
	short := func(body string) func(*examination) {
		return func(e *examination) { e.first = re(201, body) }
	}
	plays(t, "mismatch", map[string]scene{
		"422":      {answers: []*answer{refusal(422)}, sent: other, want: []string{"mismatch-status stripe: refused with 422", blamed(422)}},
		"400":      {answers: []*answer{refusal(400)}, want: []string{"mismatch-status default,ietf: refused with 400", blamed(400)}},
		"409":      {answers: []*answer{refusal(409)}, want: []string{"mismatch-status" + everyone + "refused with 409", blamed(409)}},
		"replayed": {answers: []*answer{re(200, "first answer")}, want: []string{"mismatch-replayed" + everyone + "the other body got the first answer, 200 with 12 bytes"}},
		"ran":      {answers: []*answer{re(200, "x")}, want: []string{"mismatch-ran" + everyone + "the other body got an answer of its own, 200 with 1 bytes"}},
		"failed":   {answers: []*answer{re(500, "first answer")}, want: []string{"mismatch-status" + everyone + "500"}},
		"lost":     {want: []string{cut}},
		"leak":     {before: short("123456789"), answers: []*answer{re(422, "is 123456789!")}, want: []string{"mismatch-status stripe: refused with 422", "mismatch-leak default,ietf: the refusal (422) has the first answer in it", blamed(422)}},
		"no leak":  {before: short("12345678"), answers: []*answer{re(422, "is 12345678!")}, want: []string{"mismatch-status stripe: refused with 422", blamed(422)}},
	})
	plays(t, "path", map[string]scene{
		"refused":  {answers: []*answer{refusal(422)}, sent: []string{`POST /refunds?q=1 first {"a":1}`}},
		"no route": {answers: []*answer{refusal(404)}, want: []string{"why: /refunds answers 404: it is no route that takes this request"}},
		"no POST":  {answers: []*answer{refusal(405)}, want: []string{"why: /refunds answers 405: it is no route that takes this request"}},
		"replayed": {answers: []*answer{re(200, "first answer")}, want: []string{"path-replayed" + both + "it got the first path's answer, 200 with 12 bytes"}},
		"ran":      {answers: []*answer{re(200, "x")}, want: []string{"path-ran" + both + "200 with 1 bytes"}},
		"lost":     {want: []string{cut}},
	})
	plays(t, "method", map[string]scene{
		"ran":      {answers: []*answer{re(200, "x")}, sent: []string{`PUT /orders?q=1 first {"a":1}`}},
		"replayed": {answers: []*answer{re(200, "first answer")}, want: []string{"method-replayed" + both + "it got the answer to POST, 200 with 12 bytes"}},
		"lost":     {want: []string{cut}},
	})
	plays(t, "caller", map[string]scene{
		"ran":       {answers: []*answer{re(200, "x")}, sent: []string{`POST /orders?q=1 first Authorization:omar {"a":1}`}},
		"nobody":    {answers: []*answer{refusal(401)}, want: []string{"why: the API answers 401 to the other caller"}},
		"forbidden": {answers: []*answer{refusal(403)}, want: []string{"why: the API answers 403 to the other caller"}},
		"replayed":  {answers: []*answer{re(200, "first answer")}, want: []string{"caller-replayed" + everyone + "the other caller got the first caller's answer, 200 with 12 bytes"}},
		"lost":      {want: []string{cut}},
	})
	plays(t, "refusal", map[string]scene{
		"frees":   {answers: []*answer{refusal(400), re(201, "x")}, sent: []string{`POST /orders?q=1 refusal {}`, `POST /orders?q=1 refusal {"a":1}`}},
		"burns":   {answers: []*answer{refusal(400), refusal(400)}, want: []string{"refusal-burns" + both + "refused with 400; the corrected request got 400"}},
		"ours":    {answers: []*answer{refusal(422), refusal(422)}, want: []string{"refusal-burns default: refused with 422; the corrected request got 422"}},
		"kept":    {answers: []*answer{refusal(404)}, want: []string{"why: the API refuses with 404, which every contract keeps"}},
		"takes":   {answers: []*answer{re(201, "x")}, want: []string{"why: the API answers 201 to the body that it should refuse"}},
		"lost":    {want: []string{cut}},
		"lost of": {answers: []*answer{refusal(400)}, want: []string{cut}},
	})
}

func TestMalformedScenes(t *testing.T) {
	t.Parallel()
	optional := func(tp *Template) { tp.KeyOptional = true }
	plays(t, "missing", map[string]scene{
		"400":      {answers: []*answer{re(400, "")}, sent: []string{`POST /orders?q=1 {"a":1}`}, want: []string{"blamed: 400 idempotency_key_required"}},
		"422":      {answers: []*answer{re(422, "")}, want: []string{"missing-status default,ietf: 422", "blamed: 422 idempotency_key_required"}},
		"500":      {answers: []*answer{re(500, "")}, want: []string{"missing-status default,ietf: 500"}},
		"runs":     {answers: []*answer{re(201, "x")}, want: []string{"missing-ran default,ietf: 201 with 1 bytes; if the API's documentation says that keys are optional, say -key-optional"}},
		"may run":  {template: optional, answers: []*answer{re(201, "x")}},
		"may fail": {template: optional, answers: []*answer{re(500, "x")}, want: []string{"missing-status default,ietf: 500"}},
		"lost":     {want: []string{cut}},
	})
	no := re(400, "")
	blamed := slices.Repeat([]string{"blamed: 400 "}, 4)
	long := func(quote string) []string {
		return []string{
			`POST /orders?q=1  {"a":1}`, "POST /orders?q=1 " + quote + "long-" + strings.Repeat("x", 256-len("p-n-long-")) + quote + ` {"a":1}`,
			"POST /orders?q=1 " + quote + "twice" + quote + " " + quote + "twice-2" + quote + ` {"a":1}`, "POST /orders?q=1 " + quote + "ascii-é" + quote + ` {"a":1}`,
		}
	}
	plays(t, "malformed", map[string]scene{
		"refused": {answers: []*answer{no, no, no, no}, sent: long(""), want: blamed},
		"quoted":  {before: func(e *examination) { e.quotes = true }, answers: []*answer{no, no, no, no}, sent: long(`"`), want: blamed},
		"taken": {answers: []*answer{re(201, "x"), re(201, "xx"), re(201, "xxx"), re(201, "xxxx")}, want: []string{
			"key-empty default,ietf: 201 with 1 bytes", "key-long" + both + "201 with 2 bytes", "key-twice default,ietf: 201 with 3 bytes", "key-ascii default,ietf: 201 with 4 bytes",
		}},
		"422":  {answers: []*answer{no, re(422, ""), no, no}, want: append([]string{"key-status" + both + "long: 422"}, blamed[:3]...)},
		"lost": {answers: []*answer{no}, want: []string{"blamed: 400 ", cut}},
	})
}

func TestErrorScenes(t *testing.T) {
	t.Parallel()
	const problem, form = `{"type":"t","title":"T","code":"c"}`, "error-body"
	refused := func(body string, headers ...string) func(*examination) {
		return func(e *examination) {
			e.blamed = []*answer{re(400, body, append(headers, "Cache-Control", "private, No-Store")...)}
		}
	}
	seen := func(contracts, mediaType string) []string {
		return []string{form + " " + contracts + `: a 400 has the Content-Type "` + mediaType + `"`, "blamed: 400 "}
	}
	const pj = "application/problem+json"
	plays(t, "errors", map[string]scene{
		"none":         {want: []string{"why: no error about a key was seen"}},
		"none but 409": {before: func(e *examination) { e.busy = true }, want: []string{"busy"}},
		"a problem":    {before: refused(problem, "Content-Type", "Application/Problem+JSON ; charset=utf-8"), want: seen("stripe", pj+" ")},
		"of Stripe":    {before: refused(`{"error":{"type":"t"}}`, "Content-Type", "application/json"), want: seen("default,ietf", "application/json")},
		"both":         {before: refused(`{"type":"t","title":"T","code":"c","error":{"type":"t"}}`, "Content-Type", pj), want: []string{"blamed: 400 "}},
		"no code":      {before: refused(`{"type":"t","title":"T"}`, "Content-Type", pj), want: seen("default,stripe", pj)},
		"no type":      {before: refused(`{"title":"T","code":"c"}`, "Content-Type", pj), want: seen("default,ietf,stripe", pj)},
		"no title":     {before: refused(`{"type":"t","code":"c"}`, "Content-Type", pj), want: seen("default,ietf,stripe", pj)},
		"JSON":         {before: refused(problem, "Content-Type", "application/json"), want: seen("default,ietf,stripe", "application/json")},
		"linked":       {before: refused(``, "Link", `<https://host/keys>; rel="describedby"`), want: seen("default,stripe", "")},
		"cacheable": {before: func(e *examination) {
			e.blamed = []*answer{re(400, `{"type":"t","title":"T","code":"c","error":{"type":"t"}}`, "Content-Type", pj, "Cache-Control", "max-age=1")}
		}, want: []string{`error-cacheable default: a 400 has Cache-Control "max-age=1"`, "blamed: 400 "}},
	})
}

func TestCORSScenes(t *testing.T) {
	t.Parallel()
	const shop = "https://shop"
	page := func(tp *Template) { tp.Origin, tp.Header = shop, http.Header{"Authorization": {"jane"}} }
	puts := func(tp *Template) { page(tp); tp.Method, tp.OtherMethod = "PUT", "POST" }
	allowed := func(status int, origin string, headers ...string) *answer {
		return re(status, "", append(headers, "Access-Control-Allow-Origin", origin)...)
	}
	saw := func(all ...*answer) func(*examination) { return func(e *examination) { e.answers = all } }
	good := []*answer{allowed(204, shop, "Access-Control-Allow-Headers", "content-type, idempotency-key")}
	plays(t, "cors", map[string]scene{
		"right":          {template: page, answers: good, sent: []string{"OPTIONS /orders?q=1 Origin:https://shop Access-Control-Request-Method:POST Access-Control-Request-Headers:content-type,idempotency-key"}},
		"all":            {template: puts, answers: []*answer{allowed(200, "*", "Access-Control-Allow-Headers", "*", "Access-Control-Allow-Methods", "*")}},
		"lost":           {template: page, want: []string{cut}},
		"fails":          {template: page, answers: []*answer{allowed(403, shop, "Access-Control-Allow-Headers", "*")}, want: []string{`cors-preflight default: 403, Access-Control-Allow-Origin "https://shop"`}},
		"other":          {template: page, answers: []*answer{allowed(204, "https://x", "Access-Control-Allow-Headers", "*")}, want: []string{`cors-preflight default: 204, Access-Control-Allow-Origin "https://x"`}},
		"no header":      {template: page, answers: []*answer{allowed(204, shop, "Access-Control-Allow-Headers", "content-type")}, want: []string{`cors-preflight default: Access-Control-Allow-Headers "content-type"`}},
		"no method":      {template: puts, answers: []*answer{allowed(204, shop, "Access-Control-Allow-Headers", "*", "Access-Control-Allow-Methods", "GET,POST")}, want: []string{`cors-preflight default: Access-Control-Allow-Methods "GET,POST"`}},
		"a method":       {template: puts, answers: []*answer{allowed(204, shop, "Access-Control-Allow-Headers", "*", "Access-Control-Allow-Methods", "GET, put")}},
		"hidden":         {template: page, answers: good, before: saw(allowed(201, "https://x", "Retry-After", "1")), want: []string{`cors-hidden default: a 201 has Access-Control-Allow-Origin "https://x"`}},
		"hidden refusal": {template: page, answers: good, before: func(e *examination) { e.blamed = []*answer{re(400, "")} }, want: []string{`cors-hidden default: a 400 has Access-Control-Allow-Origin ""`, "blamed: 400 "}},
		"exposed":        {template: page, answers: good, before: saw(allowed(201, "*", "Retry-After", "1", "Idempotent-Replayed", "true", "Access-Control-Expose-Headers", "Retry-After , idempotent-replayed"))},
		"unexposed":      {template: page, answers: good, before: saw(allowed(201, "*", "Idempotency-Expires", "1")), want: []string{`cors-unexposed default: a 201 has Idempotency-Expires, but exposes ""`}},
	})
}
