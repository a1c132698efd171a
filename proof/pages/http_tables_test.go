package pages_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/retrysign"
	"github.com/samekey/samekey/internal/base/storedheaders"
)

// presets: what they set.
func presets(t *testing.T) string {
	all := slices.Concat(contracts, commerce)
	tb := columnsOf(all, "")
	rows := [][]string{
		{"a key lives for"},
		{"methods"},
		{"a request without a key"},
		{"a key without quotes"},
		{"the handler's 500"},
		{"error bodies"},
		{"the key with another body"},
		{"the same JSON in other bytes"},
		{"the key on another path"},
	}
	for _, c := range all {
		for i, cell := range []func(*stage) string{
			func(s *stage) string {
				return shortened(s.post(created).Header.Get("Idempotency-Expires"))[len("in "):]
			},
			func(s *stage) string {
				return strings.Join(slices.DeleteFunc(slices.Clone(allMethods), func(m string) bool { return !s.acts(m) }), ", ")
			},
			func(s *stage) string { return statusOf(s.post(created, withKey()).Result) },
			func(s *stage) string {
				bare := *s
				bare.quoted = false
				return statusOf(s.post(created, withKey(bare.spelled(key))).Result)
			},
			func(s *stage) string {
				s.post(answering(http.StatusInternalServerError))
				return map[bool]string{true: "kept", false: "free"}[s.post(created).Replayed]
			},
			func(s *stage) string { return code(s.post(created, withKey("")).Header.Get("Content-Type")) },
			func(s *stage) string { return afterwards(s, otherBody) },
			func(s *stage) string {
				return afterwards(s, func(r *idem.Request) { r.Body = []byte(`{"amount":2e3}`) })
			},
			func(s *stage) string { return afterwards(s, func(r *idem.Request) { r.Path = "/refunds" }) },
		} {
			play(t, c, nil, func(s *stage) { rows[i] = append(rows[i], cell(s)) })
		}
	}
	tb.Rows = rows
	return tb.String()
}

// afterwards is the answer to a request with the key of another one.
func afterwards(s *stage, edit func(*idem.Request)) string {
	s.post(created)
	o := s.post(created, edit)
	if o.ran {
		return "runs"
	}
	return statusOf(o.Result)
}

var allMethods = []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}

func (s *stage) acts(method string) bool {
	return s.e.Acts(method, http.Header{"Idempotency-Key": {key}})
}

// keyRows are values of the header.
var keyRows = []struct {
	shown  string // where the value can't be
	values []string
}{
	{values: []string{"8e03978e-40d5"}},
	{values: []string{`"8e03978e-40d5"`}},
	{values: []string{`"8e03978e-40d5";v=1`}},
	{values: []string{`"a\"b\\c"`}},
	{shown: "`abc` with spaces around it", values: []string{"  abc\t"}},
	{shown: "255 characters", values: []string{strings.Repeat("x", 255)}},
	{shown: "256 characters", values: []string{strings.Repeat("x", 256)}},
	{shown: "empty, or spaces", values: []string{" "}},
	{values: []string{`""`}},
	{values: []string{"a b"}},
	{values: []string{`"a b"`}},
	{values: []string{"a,b"}},
	{values: []string{`"a,b"`}},
	{values: []string{`"abc`}},
	{shown: "not ASCII: `é`", values: []string{"é"}},
	{shown: "a control character", values: []string{"a\x00b"}},
	{shown: "the header twice", values: []string{"abc", "abc"}},
}

// keys: which values of the header are which key.
func keys(t *testing.T) string {
	tb := table{Head: []string{"the header's value", "key", "under `IETF`"}}
	var refused []string
	for _, row := range keyRows {
		shown := row.shown
		if shown == "" {
			shown = code(row.values[0])
		}
		echo := ""
		play(t, contracts[0], nil, func(s *stage) { echo = s.post(created, withKey(row.values...)).Header.Get(idem.KeyHeader) })
		key := parsed(row.values, false)
		if sent := strings.TrimSuffix(strings.TrimSpace(row.values[0]), ";v=1"); key != "400" && echo != sent || key == "400" && echo != "" {
			t.Errorf("%q is echoed as %q", row.values, echo)
		}
		strict := parsed(row.values, true)
		if key == "400" && strict == "400" {
			refused = append(refused, shown)
			continue
		}
		tb.Add(shown, key, strict)
	}
	tb.Add(strings.Join(refused, ", "), "400", "400")
	return tb.String()
}

func parsed(values []string, strict bool) string {
	key := ""
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		if strict {
			idem.IETF(o)
		}
		o.Scope = func(_ context.Context, r *idem.Request) (string, error) { key = r.Key; return "all", nil }
	})
	ok := func(context.Context) (idem.Response, error) { return idem.Response{}, nil }
	r := idem.Request{Method: http.MethodPost, Header: http.Header{idem.KeyHeader: values}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch res, err := engine.Serve(ctx, r, ok); {
	case err != nil || res.Status == http.StatusBadRequest:
		return "400"
	case len(key) > 100:
		return "as sent"
	}
	return code(key)
}

// modes: what becomes of requests with and without a key.
func modes(t *testing.T) string {
	tb := table{Head: []string{"`Options.Key`", "no key", "a new key", "the same request again", "the key with another body", "an invalid key"}}
	for mode, name := range []string{"KeyRequired", "KeyOptional", "KeyGenerate", "any, in `ModeObserve`"} {
		row := []string{code(name)}
		if mode > 2 {
			row = []string{name}
		}
		for _, act := range []func(*stage) outcome{
			func(s *stage) outcome { return s.post(created, withKey()) },
			func(s *stage) outcome { return s.post(created) },
			again,
			func(s *stage) outcome {
				s.post(created)
				return s.post(created, otherBody)
			},
			func(s *stage) outcome { return s.post(created, withKey("")) },
		} {
			play(t, contracts[0], func(o *idem.Options) {
				if o.Key = idem.KeyMode(mode); mode > 2 {
					o.Key, o.Mode = idem.KeyRequired, idem.ModeObserve
				}
			}, func(s *stage) {
				o := act(s)
				cell := statusOf(o.Result)
				if o.ran {
					cell += " runs"
				}
				row = append(row, cell)
			})
		}
		tb.Add(row...)
	}
	return tb.String()
}

// retrySigns: by which headers a request says that it is a retry.
func retrySigns(*testing.T) string {
	var b strings.Builder
	for _, h := range retrysign.All() {
		first := ""
		if h.First > 0 {
			first = ", from " + strconv.Itoa(h.First)
		}
		fmt.Fprintf(&b, "- `%s`: [%s](%s)%s\n", h.Name, h.Senders, h.Source, first)
	}
	return b.String()
}

// storedHeaders: which of the handler's headers come with a replay.
func storedHeaders(t *testing.T) string {
	var kept []string
	for _, header := range storedheaders.All() {
		kept = append(kept, header.Name)
	}
	others := []string{"Retry-After", "X-Request-Id", "X-Mine"}
	secret := []string{"Set-Cookie", "Authorization", "Www-Authenticate", "X-Amzn-Trace-Id"}
	all := slices.Concat(kept, others, secret)
	h := func(context.Context) (idem.Response, error) {
		header := make(http.Header)
		for _, name := range all {
			header.Set(name, "x")
		}
		return idem.Response{Status: 201, Header: header}, nil
	}
	reads := func(r *idem.Request) { r.Header.Set("Accept-Encoding", "x") }
	// replayed returns the headers of a replay, or nil if the engine's option is refused.
	replayed := func(store ...string) (found []string) {
		play(t, contracts[0], nil, func(s *stage) {
			defer func() { _ = recover() }()
			s.with(func(o *idem.Options) { o.StoreHeaders = store })
			s.post(h, reads)
			o := s.post(h, reads)
			for _, name := range all {
				if o.Header.Get(name) != "" {
					found = append(found, name)
				}
			}
		})
		return found
	}
	if diff := cmp.Diff(kept, replayed()); diff != "" {
		t.Errorf("a replay's headers (-want +got):\n%s", diff)
	}
	for _, name := range others {
		if !slices.Contains(replayed(name), name) {
			t.Errorf("a replay doesn't have %s, which StoreHeaders names", name)
		}
	}
	for _, name := range secret {
		if got := replayed(name); got != nil {
			t.Errorf("StoreHeaders takes %s: a replay has %q", name, got)
		}
	}
	tb := table{Head: []string{"the handler's headers", "in a replay"}}
	list := func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
	tb.Add(list(kept), "yes")
	tb.Add("others, such as "+list(others), "if `StoreHeaders` names them")
	tb.Add(list(secret), "never: the engine refuses them in `StoreHeaders` at start")
	return tb.String()
}
