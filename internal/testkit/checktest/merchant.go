package checktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// merchantFault is a mistake that a [Merchant] can make.
type merchantFault struct {
	Name, Does string
	ACP, UCP   []string // the rules that the fault breaks under ACP and under UCP
}

// MerchantFaults returns all faults of a [Merchant].
func MerchantFaults() []merchantFault {
	both := func(name, does string, rules ...string) merchantFault {
		return merchantFault{name, does, rules, rules}
	}
	acp := func(name, does string, rules ...string) merchantFault {
		return merchantFault{name, does, rules, nil}
	}
	return []merchantFault{
		both("reruns", "runs every creation again", "replay-differs"),
		both("says202", "replays with status 202", "cancel-reran", "complete-reran", "replay-status", "update-reran"),
		acp("unmarked", "doesn't mark replays", "cancel-unmarked", "complete-unmarked", "replay-unmarked", "update-unmarked"),
		acp("update-unmarked", "doesn't mark replays of updates", "update-unmarked"),
		acp("complete-unmarked", "doesn't mark replays of completions", "complete-unmarked"),
		acp("cancel-unmarked", "doesn't mark replays of cancellations", "cancel-unmarked"),
		acp("no-echo", "doesn't echo keys", "key-unechoed"),
		acp("no-request-id", "doesn't echo Request-Id", "request-id-unechoed"),
		{"bytes", "compares bodies by their bytes", []string{"respelled-refused"}, nil},
		acp("numbers", "compares numbers as they are written", "respelled-refused"),
		acp("drops-nulls", "keeps bodies without their nulls, and compares those", "null-absent", "respelled-refused"),
		acp("respelled-runs", "runs a body in another spelling", "respelled-ran"),
		acp("null-absent", "takes a null for an absent member", "null-absent"),
		acp("kept-null-absent", "takes an absent member for a null that it has kept", "null-absent"),
		acp("null-runs", "runs a body that differs by a null", "mismatch-ran"),
		acp("unordered", "compares arrays without their order", "array-order"),
		{"meaning", "compares bodies by their meaning", nil, []string{"bytes-ignored"}},
		{
			"ignores-body", "doesn't compare bodies",
			[]string{"array-order", "cancel-mismatch", "complete-mismatch", "mismatch-replayed", "null-absent", "update-mismatch"},
			[]string{"bytes-ignored", "cancel-mismatch", "complete-mismatch", "mismatch-replayed", "update-mismatch"},
		},
		both("runs-mismatch", "runs another body under the same key", "cancel-mismatch", "complete-mismatch", "mismatch-ran", "update-mismatch"),
		both("mismatch400", "refuses another body with 400", "cancel-mismatch", "complete-mismatch", "mismatch-status", "update-mismatch"),
		both("update-reruns", "runs every update again", "update-reran"),
		both("complete-reruns", "completes as often as it is asked", "complete-reran"),
		both("cancel-reruns", "cancels as often as it is asked", "cancel-reran"),
		both("update-any", "doesn't compare the bodies of updates", "update-mismatch"),
		both("complete-any", "doesn't compare the bodies of completions", "complete-mismatch"),
		both("cancel-any", "doesn't compare the bodies of cancellations", "cancel-mismatch"),
		both("one-scope-replays", "looks up keys without their path, and doesn't compare", "path-replayed"),
		acp("one-scope", "looks up keys without their path", "path-refused"),
		acp("session-scope", "looks up keys of a session without their operation", "path-refused"),
		both("update-anywhere", "looks up keys of updates without their session", "path-replayed"),
		both("complete-anywhere", "looks up keys of completions without their session", "path-replayed"),
		both("cancel-anywhere", "looks up keys of cancellations without their session", "path-replayed"),
		both("ignores-caller", "doesn't keep callers apart", "caller-replayed"),
		both("races", "looks a key up first and writes it later", "concurrent-complete-twice", "concurrent-twice"),
		both("complete-races", "looks a completion's key up first and writes it later", "concurrent-complete-twice"),
		both("fails-races", "answers 500 while a request with the key is in flight", "concurrent-complete-failed", "concurrent-failed"),
		both("complete-fails-races", "answers 500 while a completion with the key is in flight", "concurrent-complete-failed"),
		both("runs-keyless", "runs requests without a key", "missing-ran"),
		acp("keyless422", "refuses requests without a key with 422", "missing-status"),
		acp("short-keys", "refuses keys of more than 64 characters", "key-short"),
		acp("long-keys", "takes keys of any length", "key-long"),
		both("forgets", "forgets a key once it has refused another body", "kept-lost", "mismatch-ran"),
		both("problems", "answers errors as problem+json", "error-body"),
		acp("codes", "has codes of its own", "error-code"),
		acp("no-retry-after", "doesn't say when to come again", "retry-after"),
	}
}

// Merchant is an in-memory API for checkout sessions. It follows ACP or UCP, except for the rules
// that its faults break. Race.N must be set.
type Merchant struct {
	Race

	UCP bool

	wrong map[string]bool

	mu      sync.Mutex
	effects int
	records map[string]*kept
}

type kept struct {
	same   string // the form of the request with which later requests are compared
	done   bool
	status int
	body   []byte
}

// WrongMerchant returns a merchant with these faults.
func WrongMerchant(ucp bool, racers int, faults ...string) *Merchant {
	m := &Merchant{Race: Race{N: racers}, UCP: ucp, wrong: make(map[string]bool), records: make(map[string]*kept)}
	for _, f := range faults {
		if !slices.ContainsFunc(MerchantFaults(), func(known merchantFault) bool { return known.Name == f }) {
			panic("checktest: there is no fault " + f) //nolint:forbidigo // a mistake in the test
		}
		m.wrong[f] = true
	}
	return m
}

// Effects returns the number of operations that were carried out.
func (m *Merchant) Effects() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.effects
}

// ServeHTTP implements http.Handler.
func (m *Merchant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.Outside(http.HandlerFunc(m.serve)).ServeHTTP(w, r)
}

// Merchant.operation returns the name of the operation that a request asks for, or ""
// if it asks for none.
func (m *Merchant) operation(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	update := http.MethodPost
	if m.UCP {
		update = http.MethodPut
	}
	switch {
	case parts[0] != "sessions" || len(parts) > 3:
	case len(parts) == 1 && r.Method == http.MethodPost:
		return "create"
	case len(parts) == 2 && r.Method == update:
		return "update"
	case len(parts) == 3 && r.Method == http.MethodPost && (parts[2] == "complete" || parts[2] == "cancel"):
		return parts[2]
	}
	return ""
}

func (m *Merchant) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	op, keys := m.operation(r), r.Header.Values("Idempotency-Key")
	longest := 255
	if m.wrong["short-keys"] {
		longest = 64
	}
	if id := r.Header.Get("Request-Id"); id != "" && !m.wrong["no-request-id"] {
		w.Header().Set("Request-Id", id)
	}
	switch {
	case err != nil || op == "":
		m.refuse(w, http.StatusNotFound, "not_found")
	case len(keys) == 0 && m.wrong["runs-keyless"]:
		m.send(w, m.handle(op, r, &kept{}))
	case len(keys) == 0 && m.wrong["keyless422"]:
		m.refuse(w, http.StatusUnprocessableEntity, "idempotency_key_required")
	case len(keys) == 0:
		m.refuse(w, http.StatusBadRequest, "idempotency_key_required")
	case len(keys[0]) > longest && !m.wrong["long-keys"]:
		m.refuse(w, http.StatusBadRequest, "idempotency_key_invalid")
	default:
		if !m.wrong["no-echo"] {
			w.Header().Set("Idempotency-Key", keys[0])
		}
		m.keyed(w, r, op, keys[0], body)
	}
}

func (m *Merchant) keyed(w http.ResponseWriter, r *http.Request, op, key string, body []byte) {
	name := key
	if !m.wrong["ignores-caller"] {
		name += " " + r.Header.Get("Authorization")
	}
	switch {
	case m.wrong["one-scope"], m.wrong["one-scope-replays"]:
	case m.wrong[op+"-anywhere"]:
		name += " " + op
	case m.wrong["session-scope"] && op != "create":
		name += " " + strings.Split(r.URL.Path, "/")[2]
	default:
		name += " " + r.Method + r.URL.Path
	}
	same := m.same(op, body)
	if m.wrong["one-scope"] {
		same += r.URL.Path
	}
	rec, claimed := m.claim(name, op, same)
	other := rec.same != same && !m.wrong["one-scope-replays"]
	if m.wrong["kept-null-absent"] && m.without(rec.same) == same {
		other = false
	}
	if m.wrong["one-scope-replays"] && strings.HasPrefix(rec.same, op) && rec.same != same {
		other = true // with this fault, requests are compared only if they ask for the same operation
	}
	switch {
	case claimed:
		m.Inside(r.Context(), key)
		m.handle(op, r, rec)
		m.mu.Lock()
		rec.done = true
		m.mu.Unlock()
		m.send(w, rec)
	case other && m.wrong["respelled-runs"] && m.meaning(body) != "":
		m.mismatch(w, name)
	case other && (m.wrong["runs-mismatch"] || m.wrong["null-runs"] && m.without(rec.same) == m.without(same)):
		m.send(w, m.handle(op, r, &kept{}))
	case other:
		m.mismatch(w, name)
	case !rec.done && (m.wrong["fails-races"] || m.wrong[op+"-fails-races"]):
		m.refuse(w, http.StatusInternalServerError, "internal_error")
	case !rec.done:
		if !m.wrong["no-retry-after"] {
			w.Header().Set("Retry-After", "1")
		}
		m.refuse(w, http.StatusConflict, "idempotency_in_flight")
	case op == "create" && m.wrong["reruns"], m.wrong[op+"-reruns"], m.wrong["respelled-runs"] && strings.Contains(string(body), " : "):
		m.send(w, m.handle(op, r, &kept{}))
	default:
		if !m.wrong["unmarked"] && !m.wrong[op+"-unmarked"] && !m.UCP {
			w.Header().Set("Idempotent-Replayed", "true")
		}
		if m.wrong["says202"] {
			rec.status = http.StatusAccepted
		}
		m.send(w, rec)
	}
}

// Merchant.claim creates the record of a key, or returns the existing record.
func (m *Merchant) claim(name, op, same string) (*kept, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.records[name]
	second := (m.wrong["races"] || m.wrong[op+"-races"]) && old != nil && !old.done && m.records["second "+name] == nil
	if old != nil && !second {
		copied := *old
		return &copied, false
	}
	rec := &kept{same: same}
	if m.wrong["drops-nulls"] {
		rec.same = m.without(same)
	}
	m.records[name] = rec
	if second {
		m.records["second "+name] = rec
	}
	return rec, true
}

// Merchant.same returns a body in the form in which bodies are compared.
func (m *Merchant) same(op string, body []byte) string {
	switch {
	case m.wrong["ignores-body"], m.wrong[op+"-any"]:
		return op
	case m.wrong["bytes"], m.UCP && !m.wrong["meaning"]:
		return op + string(body)
	}
	return op + m.meaning(body)
}

// Merchant.without removes the nulls from a text that same returned.
func (m *Merchant) without(same string) string {
	return strings.NewReplacer(`"absent":null,`, "", `,"samekey_check":null`, "").Replace(same)
}

// Merchant.meaning rewrites a body so that neither the order of members nor the
// spelling of numbers matters.
func (m *Merchant) meaning(body []byte) string {
	dec := json.NewDecoder(bytes.NewReader(body))
	if m.wrong["numbers"] {
		dec.UseNumber()
	}
	var v any
	if dec.Decode(&v) != nil {
		return string(body)
	}
	v = m.plain(v)
	text, _ := json.Marshal(v) // no error is possible: v is decoded JSON
	return string(text)
}

func (m *Merchant) plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if v[name] = m.plain(member); member == nil && m.wrong["null-absent"] {
				delete(v, name)
			}
		}
	case []any:
		for i := range v {
			v[i] = m.plain(v[i])
		}
		if m.wrong["unordered"] {
			slices.SortFunc(v, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	return v
}

// Merchant.handle carries out an operation.
func (m *Merchant) handle(op string, r *http.Request, rec *kept) *kept {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.effects++
	rec.status = http.StatusOK
	id := strings.Split(strings.Trim(r.URL.Path+"/", "/"), "/")
	session := fmt.Sprintf("cs_%03d", m.effects)
	if op == "create" {
		rec.status = http.StatusCreated
	} else {
		session = id[1]
	}
	rec.body = fmt.Appendf(nil, `{"id":%q,"did":%q,"effect":%d}`, session, op, m.effects)
	return rec
}

func (m *Merchant) send(w http.ResponseWriter, rec *kept) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(rec.status)
	_, _ = w.Write(rec.body) //nolint:gosec // JSON, for a test; the client may be gone
}

func (m *Merchant) mismatch(w http.ResponseWriter, name string) {
	if m.wrong["forgets"] {
		m.mu.Lock()
		delete(m.records, name)
		m.mu.Unlock()
	}
	status := http.StatusUnprocessableEntity
	if m.UCP {
		status = http.StatusConflict
	}
	if m.wrong["mismatch400"] {
		status = http.StatusBadRequest
	}
	m.refuse(w, status, "idempotency_conflict")
}

func (m *Merchant) refuse(w http.ResponseWriter, status int, code string) {
	if m.wrong["codes"] {
		code = "x_" + code
	}
	body := fmt.Appendf(nil, `{"type":"invalid_request","code":%q,"message":"No."}`, code)
	if m.UCP {
		body = fmt.Appendf(nil, `{"code":%q,"content":"No."}`, code)
	}
	if m.wrong["problems"] {
		body = fmt.Appendf(nil, `{"type":"https://shop.example/problems#%s","title":"No."}`, code)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
