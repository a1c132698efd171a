package tenants_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// caller is the sender of a request, as the platform has verified it.
type caller struct {
	tenant string // of Lambda's tenant isolation; "" without it
	kind   string
	a, b   string // issuer and subject, pool and user, source and function; or b alone
	cred   string // what an unverified caller presents: a header's "Name: value"
}

// presented are headers by which clients say who they are, and nobody verifies it.
var presented = []string{
	"", "Authorization: Bearer a", "Authorization: Bearer b", "Authorization: Bearer A", "Cookie: sid=a", "Cookie: sid=b", "X-Api-Key: a",
	"X-Auth-Token: a", "X-Auth-Token: b", "X-Forwarded-Client-Cert: Subject=a", "X-Amzn-Oidc-Accesstoken: a",
}

// group returns the callers that share their keys with c: those behind one API key, if
// the program chooses that.
func (c caller) group() caller {
	if c.kind == "apikey" {
		c.cred = ""
	}
	return c
}

// content is a request's work. Contents of equal body differ by method, path or query.
type content struct {
	method, path, query, body string
	does                      string
}

var contents = []content{
	{"POST", "/pay", "", `{"c":0}`, "created"},
	{"POST", "/refund", "", `{"c":0}`, "created"},
	{"POST", "/pay", "fast=1", `{"c":0}`, "created"},
	{"POST", "/pay", "", `{"c":1}`, "declined"},
	{"POST", "/pay", "", `{"c":2}`, "fails at first"},
	{"POST", "/pay", "", `{"c":3}`, "large"},
	{"POST", "/pay", "", `{"c":4}`, "refused"},
	{"POST", "/pay", "", ``, "created"},
	{"PUT", "/pay", "", `{"c":0}`, "created"},
	{"GET", "/pay", "", ``, "created"},
}

// contentOf returns the number of a content.
func contentOf(method, path, query, body string) int {
	for i, c := range contents {
		if c.method == method && c.path == path && c.query == query && c.body == body {
			return i
		}
	}
	return -1
}

// bodyOf returns the first content with this body, for events without a path.
func bodyOf(body string) int {
	for i, c := range contents {
		if c.body == body {
			return i
		}
	}
	return -1
}

// How the ticket of a resume is made.
const (
	genuine = iota
	forgedOwner
	forgedVersion
	swapped // owner and version of another operation
	otherTenant
)

// request is one event, and the events that arrive while its handler works.
type request struct {
	index   int
	at      time.Duration // on the world's clock
	door    string
	app     int
	who     int // in its script's callers
	key     string
	content int
	base64  bool
	forged  int // the caller whose name its headers claim

	status   bool // a GET of the status resource
	resume   *request
	other    *request // whose ticket it is swapped with
	ticket   int
	waits    bool // sent beside its parent, whose handler goes on once the request waits
	children []*request
}

// script is an episode: the callers, and what they send.
type script struct {
	seed    uint64
	callers []caller
	roots   []*request
	all     []*request
}

// group is the group whose operation a request may touch.
func (s *script) group(r *request) caller {
	if r.resume != nil {
		return s.group(r.resume)
	}
	return s.callers[r.who].group()
}

// same reports whether two callers share their keys. -1 is nobody.
func (s *script) same(i, j int) bool {
	return i >= 0 && s.callers[i].group() == s.callers[j].group()
}

var (
	// Names that run together if they are joined carelessly.
	oddNames = []string{"a", "b", "A", "a|b", "b|a", "a%7Cb", "|a", "a#b", "jwt:a", "tenant:a|jwt:a", "é", "e\u0301", "operation:x|a", strings.Repeat("n", 200)}
	tenants  = []string{"", "", "blue", "green", "blue|jwt:a", "blue|"}
	arns     = []string{
		"arn:aws:iam::111111111111:user/a", "arn:aws:iam::222222222222:user/a", "arn:aws:sts::111111111111:assumed-role/Shop/a",
		"arn:aws:sts::111111111111:assumed-role/Shop/b",
	}
	functions = []string{
		"arn:aws:lambda:eu-central-1:111111111111:function:api", "arn:aws:lambda:eu-central-1:111111111111:function:api:beta",
		"arn:aws:lambda:eu-central-1:111111111111:function:other", "arn:aws:lambda:eu-central-1:222222222222:function:api",
	}
	keys = []string{
		"k", "K", "k ", `"k"`, `"k";p=1`, "k,k", "k#", "a|k", "a%7Ck", "v1#jwt:a|a#k", "tenant:blue|k", "..", "k/../k", "%6b", "é", "k\x01", "",
		strings.Repeat("k", 255), strings.Repeat("k", 256), "2b1c8a1e-7f0c-4d3a-9a57-0d6c5b1f1c11",
	}
)

// doorsOf are the doors at which a kind of caller arrives.
var doorsOf = map[string][]string{
	"jwt": {"httpapi", "rest"}, "iam": {"httpapi", "rest", "url"}, "pool": {"httpapi", "rest"}, "lambda": {"httpapi", "rest"},
	"apikey": {"rest"}, "cert": {"httpapi", "rest"}, "none": {"httpapi", "rest", "url", "alb", "router"}, "unnamed": {"httpapi"},
	"direct": {"direct"}, "appsync": {"appsync"}, "state": {"state"}, "rpc": {"rpc"},
	"sqs": {"sqs"}, "sns": {"sns"}, "eventbridge": {"eventbridge"}, "kinesis": {"kinesis"}, "kafka": {"kafka"}, "dynamodb": {"dynamodb"}, "s3": {"s3"},
}

func pick[T any](rnd *rand.Rand, from []T) T { return from[rnd.IntN(len(from))] }

func randomCaller(rnd *rand.Rand) caller {
	c := caller{tenant: pick(rnd, tenants)}
	c.kind = pick(rnd, []string{
		"jwt", "jwt", "jwt", "iam", "pool", "lambda", "lambda", "apikey", "cert", "none", "none", "unnamed",
		"direct", "appsync", "state", "rpc", "sqs", "sns", "eventbridge", "kinesis", "kafka", "dynamodb", "s3",
	})
	switch c.kind {
	case "jwt":
		c.a, c.b = pick(rnd, oddNames), pick(rnd, oddNames)
	case "iam":
		c.b = pick(rnd, arns)
	case "pool":
		c.a, c.b = "eu-central-1:p"+pick(rnd, []string{"1", "2"}), "eu-central-1:u"+pick(rnd, []string{"1", "2"})
	case "lambda", "cert":
		c.a, c.b = pick(rnd, oddNames), pick(rnd, oddNames)
	case "apikey":
		c.b, c.cred = pick(rnd, oddNames), pick(rnd, presented)
	case "none":
		c.cred = pick(rnd, presented)
	case "direct", "state", "rpc":
		c.b = pick(rnd, functions)
	case "appsync":
		c.tenant, c.a, c.b = "", pick(rnd, oddNames), pick(rnd, oddNames)
	case "sqs":
		c.tenant, c.a = "", pick(rnd, []string{"arn:aws:sqs:eu-central-1:111111111111:a", "arn:aws:sqs:eu-central-1:111111111111:A", "arn:aws:sqs:eu-central-1:222222222222:a"})
	case "sns", "kinesis", "dynamodb", "s3":
		c.a, c.b = "arn:aws:"+c.kind+":eu-central-1:111111111111:"+pick(rnd, []string{"a", "b"}), pick(rnd, functions)
	case "kafka":
		c.a, c.b = "arn:aws:kafka:eu-central-1:"+pick(rnd, []string{"111111111111:c/", "222222222222:c/"})+pick(rnd, []string{"a", "b"}), pick(rnd, functions)
	case "eventbridge":
		c.a, c.b = pick(rnd, []string{"a", "b", "111111111111:a"}), pick(rnd, functions)
	}
	return c
}

// lease is longer than a test can hold a key by real time.
const (
	lease     = 10 * time.Minute
	retention = time.Hour
)

// generate makes an episode of at least n requests.
func generate(seed uint64, n int) *script {
	rnd := rand.New(rand.NewPCG(seed, 0))
	s := &script{seed: seed}
	for range 5 + rnd.IntN(6) {
		s.callers = append(s.callers, randomCaller(rnd))
	}
	if rnd.IntN(2) == 0 { // some callers differ in one respect only
		c := s.callers[0]
		c.tenant = pick(rnd, tenants)
		s.callers = append(s.callers, c)
		if c.kind == "jwt" || c.kind == "lambda" || c.kind == "apikey" || c.kind == "cert" {
			c.b += "x"
			s.callers = append(s.callers, c)
		}
	}
	s.callers = unique(s.callers)
	few := make([]string, 2+rnd.IntN(4))
	for i := range few {
		few[i] = pick(rnd, keys)
	}
	few[0] = "k"
	var at time.Duration
	for len(s.all) < n {
		s.roots = append(s.roots, s.request(rnd, few, &at, 0))
	}
	return s
}

func unique(cs []caller) []caller {
	var out []caller
	seen := make(map[caller]bool)
	for _, c := range cs {
		if !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	return out
}

func (s *script) request(rnd *rand.Rand, keys []string, at *time.Duration, depth int) *request {
	switch rnd.IntN(60) {
	case 0:
		*at += lease + 10*time.Second
	case 1:
		if depth == 0 {
			*at += retention + lease
		}
	case 2, 3, 4, 5:
		*at += time.Second
	}
	r := &request{
		index: len(s.all), at: *at, who: rnd.IntN(len(s.callers)), forged: rnd.IntN(len(s.callers)),
		key: pick(rnd, keys), content: rnd.IntN(len(contents)), base64: rnd.IntN(4) == 0,
	}
	switch rnd.IntN(6) {
	case 0, 1, 2:
		r.content = 0
	case 3:
		r.content = 4 // fails at first
	}
	s.all = append(s.all, r)
	r.door = pick(rnd, doorsOf[s.callers[r.who].kind])
	r.app = rnd.IntN(len(apps))
	if typed(r.door) {
		r.app = rnd.IntN(typedApps)
	}
	switch rnd.IntN(12) {
	case 0: // by the completer
		for range 40 {
			of := s.all[rnd.IntN(len(s.all))]
			if of == r || of.resume != nil || of.status || batch(of.door) || !apps[of.app].resumable || contents[of.content].does != "fails at first" {
				continue
			}
			r.resume, r.door, r.app, r.who = of, of.door, of.app, of.who
			if rnd.IntN(2) == 0 {
				r.ticket = rnd.IntN(otherTenant + 1)
			}
			r.other = s.all[rnd.IntN(len(s.all))]
			return r
		}
	case 1:
		if !typed(r.door) && apps[r.app].statusURL != "" {
			r.status = true
			return r
		}
	}
	if depth < 2 && rnd.IntN(5) == 0 {
		for range 1 + rnd.IntN(3) {
			child := s.request(rnd, keys, at, depth+1)
			if rnd.IntN(2) == 0 && child.resume == nil { // the same key, while the handler works
				child.key = r.key
			}
			r.children = append(r.children, child)
		}
		if last := r.children[len(r.children)-1]; depth == 0 && apps[r.app].waits && len(last.children) == 0 && last.resume == nil && rnd.IntN(2) == 0 {
			last.waits = true
			if s.callers[last.who].kind == s.callers[r.who].kind {
				last.app, last.key = r.app, r.key
			}
		}
	}
	return r
}

func typed(door string) bool {
	switch door {
	case "httpapi", "rest", "url", "alb", "router":
		return false
	}
	return true
}

func batch(door string) bool {
	switch door {
	case "sqs", "sns", "eventbridge", "kinesis", "kafka", "dynamodb", "s3":
		return true
	}
	return false
}

// means returns the content that a request's handler sees.
func (r *request) means() int {
	if typed(r.door) {
		return bodyOf(contents[r.content].body)
	}
	return r.content
}

func (s *script) describe(r *request) string {
	c := s.callers[r.who]
	switch {
	case r.resume != nil:
		return fmt.Sprintf("request %d: the ticket (%d) of %s", r.index, r.ticket, s.describe(r.resume))
	case r.status:
		return fmt.Sprintf("request %d: %+v asks %s of %s for the status of %.40q", r.index, c, r.door, apps[r.app].name, r.key)
	}
	return fmt.Sprintf("request %d: %+v sends %s of %s %+v under %.40q", r.index, c, r.door, apps[r.app].name, contents[r.content], r.key)
}
