package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// In an examination by a commerce contract, the template's request creates a checkout session. The
// session's operations are examined as well.

func isCommerce(contract string) bool { return contract == ACP || contract == UCP }

// Checkout holds the paths and bodies of the operations on a session. An empty path
// stands for the path in the protocols, relative to the template's URL. An empty body
// stands for a default body. A session is created by a request to the template's URL
// itself.
type Checkout struct {
	ID       string // JSON Pointer to the id in the answer that creates a session; "" is /id
	Update   Operation
	Complete Operation
	Cancel   Operation
}

// Operation is a request about a session.
type Operation struct {
	Path string // contains {id}; relative to the template's URL unless it begins with a slash
	Body []byte // the body of a request that succeeds
}

// named is an operation and the name of its check.
type named struct {
	name string
	Operation
}

// Checkout.operations returns the operations of a session, in the order of a checkout.
func (c *Checkout) operations() []named {
	return []named{{"update", c.Update}, {"complete", c.Complete}, {"cancel", c.Cancel}}
}

// Template.commerce validates a template for a commerce contract, and fills empty
// fields with defaults.
func (t *Template) commerce(contract string) error {
	if !isObject(t.Body) {
		return errors.New("the body must be a JSON object that creates a checkout session")
	}
	payment := `{"payment_data":{"token":"tok_check","provider":"stripe"}}`
	if contract == UCP {
		payment = `{"payment":{"instruments":[{"id":"instrument_1","credential":{"token":"tok_check"}}]}}`
	}
	c := &t.Checkout
	c.ID = cmp.Or(c.ID, "/id")
	for _, o := range []struct {
		into *Operation
		path string
		body []byte
	}{{&c.Update, "{id}", t.Body}, {&c.Complete, "{id}/complete", []byte(payment)}, {&c.Cancel, "{id}/cancel", []byte("{}")}} {
		o.into.Path = cmp.Or(o.into.Path, o.path)
		if len(o.into.Body) == 0 {
			o.into.Body = o.body
		}
		switch {
		case !strings.Contains(o.into.Path, "{id}"):
			return fmt.Errorf("the path %q has no {id}", o.into.Path)
		case !isObject(o.into.Body):
			return fmt.Errorf("the request body for the path %s must be a JSON object", o.path)
		}
	}
	if len(t.OtherBody) == 0 {
		t.OtherBody = withMember(t.Body, "1")
	}
	return nil
}

// CommerceRules returns the rules of the commerce contracts, in the order of their
// checks.
func CommerceRules() []Rule {
	in := func(acp, ucp string) map[string]string {
		all := make(map[string]string)
		for contract, section := range map[string]string{ACP: acp, UCP: ucp} {
			if section != "" {
				all[contract] = section
			}
		}
		return all
	}
	const keys, matching, rest = "Idempotency Key Requirements", "Payload Matching", "REST binding"
	return []Rule{
		{"replay-differs", "replay", "A repeated request to create a session gets the first answer's body and doesn't run again.", in("6.3", keys)},
		{"replay-status", "replay", "A replay has the first answer's status.", in("6.3", keys)},
		{"replay-unmarked", "replay", "A replay has the header `Idempotent-Replayed: true`; a first answer doesn't have it.", in("6.3", "")},
		{"key-unechoed", "replay", "Answers echo `Idempotency-Key`.", in("3.1", "")},
		{"request-id-unechoed", "request-id", "All answers echo `Request-Id`, refusals too.", in("3.1", "")},
		{"respelled-refused", "equality", "The same JSON in another spelling (order of members, `1.0` for `1`) is the same request.", in("6.2", "")},
		{"respelled-ran", "equality", "A request with the same JSON in another spelling doesn't run again.", in("6.2", "")},
		{"null-absent", "equality", "A request with a member that is `null` differs from a request without the member.", in("6.2", "")},
		{"array-order", "equality", "Two requests differ if the elements of an array are in another order.", in("6.2", "")},
		{"bytes-ignored", "equality", "The same JSON in other bytes is another request.", in("", matching)},
		{"mismatch-replayed", "mismatch", "A request with a known key but another body doesn't get the first answer.", in("6.4", matching)},
		{"mismatch-ran", "mismatch", "A request with a known key but another body doesn't run.", in("6.4", matching)},
		{"mismatch-status", "mismatch", "A request with a known key but another body gets 422 (UCP: 409).", in("6.4", keys)},
		{"update-reran", "update", "A repeated update gets the first answer.", in("6.3", keys)},
		{"update-unmarked", "update", "A replay of an update has the header `Idempotent-Replayed: true`; the first answer doesn't have it.", in("6.3", "")},
		{"update-mismatch", "update", "A request with the key of an update, but with another body, is refused.", in("6.4", matching)},
		{"complete-reran", "complete", "A repeated completion gets the first answer.", in("6.3", keys)},
		{"complete-unmarked", "complete", "A replay of a completion has the header `Idempotent-Replayed: true`; the first answer doesn't have it.", in("6.3", "")},
		{"complete-mismatch", "complete", "A request with the key of a completion, but with another body, is refused.", in("6.4", matching)},
		{"cancel-reran", "cancel", "A repeated cancellation gets the first answer.", in("6.3", keys)},
		{"cancel-unmarked", "cancel", "A replay of a cancellation has the header `Idempotent-Replayed: true`; the first answer doesn't have it.", in("6.3", "")},
		{"cancel-mismatch", "cancel", "A request with the key of a cancellation, but with another body, is refused.", in("6.4", matching)},
		{"path-replayed", "path", "A request with a known key but for another session or operation doesn't get the first answer.", in("6.1", keys)},
		{"path-refused", "path", "A request with a known key but for another session or operation is accepted as new.", in("6.1", "")},
		{"caller-replayed", "caller", "Another caller with the same key doesn't get the first caller's answer.", in("6.1", keys)},
		{"concurrent-twice", "concurrent", "Of equal requests sent at once, at most one runs.", in("6.3", keys)},
		{"concurrent-failed", "concurrent", "Equal requests sent at once get the same answer. While one of them runs, the others may get 409.", in("6.4", keys)},
		{"concurrent-complete-twice", "concurrent-complete", "Of equal requests to complete a session, sent at once, at most one runs, so the customer pays once.", in("6.3", keys)},
		{"concurrent-complete-failed", "concurrent-complete", "Equal requests to complete a session, sent at once, get the same answer. While one of them runs, the others may get 409.", in("6.4", keys)},
		{"missing-ran", "missing", "No operation runs without a key.", in("6.1", rest)},
		{"missing-status", "missing", "A request without a key gets 400.", in("6.1", "")},
		{"key-short", "malformed", "A key of 255 characters is accepted.", in("6.1", "")},
		{"key-long", "malformed", "A key of more than 255 characters is refused.", in("6.1", "")},
		{"kept-lost", "kept", "The first request gets the first answer again after the API refused other requests with the same key.", in("6.6", keys)},
		{"error-body", "errors", "Errors about keys have `type`, `code` and `message` (UCP: `code` and `content`).", in("3.1", "REST Error Response")},
		{"error-code", "errors", "The codes of errors about keys are `idempotency_key_required`, `idempotency_conflict` and `idempotency_in_flight`.", in("6.4", "")},
		{"retry-after", "errors", "Each 429, each 503, and each 409 for a request in flight has `Retry-After`.", in("6.4", "")},
	}
}

// commerceChecks returns the checks of a commerce contract.
func commerceChecks(t Template, opt Options) []examined {
	acp := opt.Contract == ACP
	all := []examined{{"replay", "the same creation again", "", 1, 0, 1, (*examination).replay}}
	if acp {
		all = append(all,
			examined{"request-id", "the first request again and a request without a key, both with `Request-Id`", "", 2, 0, 2, (*examination).requestID},
			examined{"equality", "requests that create a session, with bodies that differ in spelling, in a null or in the order of an array", "", 5, 1, 5, (*examination).equality})
	} else {
		all = append(all, examined{"equality", "the same JSON in other bytes", "", 1, 0, 1, (*examination).bytes})
	}
	all = append(all, examined{"mismatch", "the same key with another body", "", 1, 0, 1, (*examination).mismatch})
	for _, o := range t.Checkout.operations() {
		all = append(all, examined{o.name, "a request that creates a session, two equal requests to " + o.name + " it, and a third with another body", "", 4, 2, 4, func(e *examination, ctx context.Context) error {
			return e.operation(ctx, o)
		}})
	}
	other := ""
	if len(t.OtherCaller) == 0 {
		other = "give --other-caller-env"
	}
	all = append(all,
		examined{"path", "one key for a creation, two updates, two completions and two cancellations", "", 11, 11, 11, (*examination).paths},
		examined{"caller", "the same key from another caller", other, 1, 1, 1, (*examination).caller},
		examined{"concurrent", "a request with a new key, several times at once, then again until its answer is final", "", opt.Racers + settles, 1, opt.Racers + 1, (*examination).concurrent},
		examined{"concurrent-complete", "several simultaneous completions of a session, then the same completion until its answer is final", "", 1 + opt.Racers + settles, 2, opt.Racers + 2, (*examination).completions},
		examined{"missing", "each operation without a key", "", 5, 1, 5, (*examination).missingAnywhere},
	)
	if acp {
		all = append(all, examined{"malformed", "keys of 255 and 256 characters", "", 2, 1, 2, (*examination).lengths})
	}
	return append(all,
		examined{"kept", "the first request again, after all other checks", "", 1, 0, 1, (*examination).kept},
		examined{"errors", "nothing; the check examines earlier errors (form, codes, Retry-After)", "", 0, 0, 0, (*examination).flatErrors},
	)
}

// examination.session creates a checkout session, and returns its id.
func (e *examination) session(ctx context.Context, purpose string) (string, error) {
	a, err := e.send(ctx, e.keyed(e.key(purpose)))
	if err != nil {
		return "", err
	}
	if !a.ok() {
		return "", unseen(fmt.Sprintf("the API answers %d to a request that creates another session", a.status))
	}
	var v any
	if err := json.Unmarshal(a.body, &v); err != nil {
		return "", unseen("the answer to a request that creates a session is not JSON")
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(e.template.Checkout.ID, "/"), "/") {
		object, _ := v.(map[string]any)
		v = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]
	}
	id, _ := v.(string)
	if id == "" {
		return "", unseen(fmt.Sprintf("the answer to a request that creates a session has no text at %s: give --id-pointer", e.template.Checkout.ID))
	}
	return id, nil
}

// examination.about returns a call without a key: the operation op on the session with
// this id.
func (e *examination) about(op named, id string) call {
	path := strings.ReplaceAll(op.Path, "{id}", id)
	if !strings.HasPrefix(path, "/") {
		path = strings.TrimSuffix(e.url.Path, "/") + "/" + path
	}
	c := call{path: path, body: op.Body}
	if op.name == "update" && e.opt.Contract == UCP {
		c.method = http.MethodPut
	} else {
		c.method = http.MethodPost
	}
	return c
}

// examination.operation creates a session, and sends op for this session three times
// with the same key. The third request has another body.
func (e *examination) operation(ctx context.Context, op named) error {
	name := op.name
	id, err := e.session(ctx, name+"-session")
	if err != nil {
		return err
	}
	c := e.about(op, id)
	c.keys = []string{e.key(name)}
	first, err := e.send(ctx, c)
	if err != nil {
		return err
	}
	if !first.ok() {
		return unseen(fmt.Sprintf("the API answers %d: give --%s-body with a body that the API accepts", first.status, name))
	}
	again, err := e.send(ctx, c)
	if err != nil {
		return err
	}
	if e.steady[name] = again.is(first); e.steady[name] {
		e.marked(name+"-unmarked", first, again)
	} else {
		e.breaks(name+"-reran", fmt.Sprintf("first %s, then %s", was(first), was(again)))
	}
	c.body = withMember(op.Body, "1")
	other, err := e.send(ctx, c)
	switch want := mismatchStatus(e.opt.Contract); {
	case err != nil:
		return err
	case other.status != want:
		e.breaks(name+"-mismatch", fmt.Sprintf("%d, want %d", other.status, want))
	default:
		e.blame(other, "idempotency_conflict")
	}
	return nil
}

// examination.equality sends bodies with the same meaning, and bodies that differ a
// little.
func (e *examination) equality(ctx context.Context) error {
	if !e.firm {
		return errInfirm
	}
	// the rule null-absent is tested twice, below: by a null that is removed from this
	// body, and by a null that is added to the template's body
	key, body := "equality", withMember(e.template.Body, `{"absent":null,"list":[1,2]}`)
	first, err := e.spelling(ctx, key, body)
	if err != nil {
		return err
	}
	if !first.ok() {
		e.note(fmt.Sprintf("The API answers %d to a body with an unknown member. Therefore only the numbers, nulls and arrays in your own body were examined.", first.status))
		key, body, first = "first", e.template.Body, e.first
	}
	if !bytes.Contains(respelled(body), []byte(".0")) {
		e.note("The body has no integer: the spelling 1.0 for 1 was not examined.")
	}
	switch a, err := e.spelling(ctx, key, respelled(body)); {
	case err != nil:
		return err
	case !a.ok():
		e.breaks("respelled-refused", strconv.Itoa(a.status))
	case !a.replays(first):
		e.breaks("respelled-ran", was(a))
	}
	for _, almost := range []struct {
		rule, lacks string
		key         string
		body        []byte
		first       *answer
	}{
		{"null-absent", "null", key, changed(body, dropNull), first},
		{"null-absent", "", "first", withMember(e.template.Body, "null"), e.first},
		{"array-order", "array whose first and last elements differ", key, changed(body, turn), first},
	} {
		if almost.body == nil {
			e.note("The body has no " + almost.lacks + ", so the rule " + almost.rule + " was not examined.")
			continue
		}
		switch a, err := e.spelling(ctx, almost.key, almost.body); {
		case err != nil:
			return err
		case a.replays(almost.first):
			e.breaks(almost.rule, "the changed body got the first answer, "+was(a))
		case a.ok():
			e.breaks("mismatch-ran", "the body that tests the rule "+almost.rule+" got a new answer under the known key, "+was(a))
		}
	}
	return nil
}

// examination.bytes sends the first request again, with its JSON in another spelling.
func (e *examination) bytes(ctx context.Context) error {
	if !e.firm {
		return errInfirm
	}
	switch a, err := e.spelling(ctx, "first", respelled(e.template.Body)); {
	case err != nil:
		return err
	case a.replays(e.first):
		e.breaks("bytes-ignored", "the same JSON in other bytes got the first answer, "+was(a))
	case a.ok():
		e.breaks("mismatch-ran", "the same JSON in other bytes got another answer, "+was(a))
	}
	return nil
}

// examination.spelling sends a request that creates a session, with this key and this
// body.
func (e *examination) spelling(ctx context.Context, key string, body []byte) (*answer, error) {
	c := e.keyed(e.key(key))
	c.body = body
	return e.send(ctx, c)
}

// requestID sends a request that is replayed and a request that is refused, each with a
// Request-Id.
func (e *examination) requestID(ctx context.Context) error {
	for _, c := range []call{e.keyed(e.key("first")), {}} {
		c.header = http.Header{"Request-Id": {e.key("request")}}
		a, err := e.send(ctx, c)
		if err != nil {
			return err
		}
		if got := a.header.Get("Request-Id"); got != e.key("request") {
			e.breaks("request-id-unechoed", fmt.Sprintf("an answer with status %d has the Request-Id %q", a.status, got))
		}
	}
	return nil
}

// examination.paths sends each operation on two sessions, then a creation. All these
// requests have the same key. The cancellations have two sessions of their own, because
// a completed session can't be cancelled.
func (e *examination) paths(ctx context.Context) error {
	var earlier []*answer
	send := func(c call) error {
		c.keys = []string{e.key("path")}
		a, err := e.send(ctx, c)
		switch {
		case err != nil:
			return err
		case slices.ContainsFunc(earlier, a.replays):
			e.breaks("path-replayed", "the request got the answer of another path, "+was(a))
		case !a.ok():
			e.breaks("path-refused", strconv.Itoa(a.status))
		}
		earlier = append(earlier, a)
		return nil
	}
	var ids []string
	left := ""
	for i, op := range e.template.Checkout.operations() {
		if i == 0 || op.name == "cancel" {
			ids = nil
			for n := range 2 {
				id, err := e.session(ctx, fmt.Sprintf("path-%s-session-%d", op.name, n+1))
				if err != nil {
					return err
				}
				ids = append(ids, id)
			}
		}
		if !e.steady[op.name] {
			left = op.name
			continue
		}
		for _, id := range ids {
			if err := send(e.about(op, id)); err != nil {
				return err
			}
		}
	}
	if err := send(call{}); err != nil {
		return err
	}
	if left != "" {
		return unseen("see the check " + left)
	}
	return nil
}

// examination.completions completes a session several times at once.
func (e *examination) completions(ctx context.Context) error {
	complete := e.template.Checkout.operations()[1]
	if !e.steady[complete.name] {
		return unseen("see the check " + complete.name)
	}
	id, err := e.session(ctx, "concurrent-complete-session")
	if err != nil {
		return err
	}
	c := e.about(complete, id)
	c.keys = []string{e.key("complete-concurrent")}
	_, err = e.race(ctx, c, "concurrent-complete", func(*answer) bool { return true })
	return err
}

// missingAnywhere sends every operation without a key.
func (e *examination) missingAnywhere(ctx context.Context) error {
	if err := e.keyless(ctx, call{}); err != nil {
		return err
	}
	id, err := e.session(ctx, "missing-session")
	if err != nil {
		return err
	}
	for _, op := range e.template.Checkout.operations() {
		if err := e.keyless(ctx, e.about(op, id)); err != nil {
			return err
		}
	}
	return nil
}

// examination.lengths sends a key of the maximum length, and a longer key.
func (e *examination) lengths(ctx context.Context) error {
	for n, rule := range map[int]string{255: "key-short", 256: "key-long"} {
		key := e.key("long-")
		a, err := e.send(ctx, call{keys: []string{key + strings.Repeat("x", n-len(key))}})
		switch {
		case err != nil:
			return err
		case a.ok() != (n == 255):
			e.breaks(rule, was(a))
		}
	}
	return nil
}

// flatErrors judges the form and the code of the refusals that blame has kept.
func (e *examination) flatErrors(context.Context) error {
	if len(e.blamed) == 0 && !e.busy {
		return unseen("the API sent no error about a key")
	}
	for _, a := range e.blamed {
		var body struct{ Type, Code, Message, Content string }
		_ = json.Unmarshal(a.body, &body) // if the body is not JSON, its fields count as missing
		kinds := []string{"invalid_request", "processing_error", "service_unavailable"}
		flat := body.Code != "" && body.Message != "" && slices.Contains(kinds, body.Type)
		if e.opt.Contract == UCP {
			flat = body.Code != "" && body.Content != ""
		}
		if !flat {
			e.breaks("error-body", fmt.Sprintf("an answer with status %d has %d bytes and lacks some of the required members", a.status, len(a.body)))
		} else if a.code != "" && body.Code != a.code {
			e.breaks("error-code", fmt.Sprintf("an answer with status %d has the code %q, want %q", a.status, body.Code, a.code))
		}
	}
	return nil
}

func isObject(body []byte) bool {
	var v map[string]json.RawMessage
	return json.Unmarshal(body, &v) == nil && v != nil
}

// withMember returns the JSON object body with the additional member samekey_check,
// which has the given value.
func withMember(body []byte, value string) []byte {
	body = bytes.TrimSpace(body)
	open := bytes.TrimSpace(body[:len(body)-1])
	comma := ","
	if len(open) == 1 {
		comma = ""
	}
	return fmt.Appendf(nil, `%s%s"samekey_check":%s}`, open, comma, value)
}

// respelled returns a JSON value in another spelling: members in reverse alphabetical
// order, integers with the fraction .0, and spaces in objects.
func respelled(body []byte) []byte {
	return spell(nil, decoded(body))
}

func decoded(body []byte) (v any) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	_ = dec.Decode(&v) // no error: Template.commerce has checked that the body is a JSON object
	return v
}

func spell(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		b = append(b, "{ "...)
		for i, name := range slices.Backward(slices.Sorted(maps.Keys(v))) {
			quoted, _ := json.Marshal(name) // no error: a string can always be encoded
			b = append(append(b, quoted...), " : "...)
			if b = spell(b, v[name]); i > 0 {
				b = append(b, ", "...)
			}
		}
		return append(b, " }"...)
	case []any:
		b = append(b, '[')
		for i, m := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = spell(b, m)
		}
		return append(b, ']')
	case json.Number:
		b = append(b, v...)
		if !strings.ContainsAny(v.String(), ".eE") {
			b = append(b, ".0"...)
		}
		return b
	}
	text, _ := json.Marshal(v) // no error: v was decoded from JSON
	return append(b, text...)
}

// changed decodes body, calls change with the value, and returns the value as JSON. If
// change returns false, because it found nothing to change, changed returns nil.
func changed(body []byte, change func(any) bool) []byte {
	v := decoded(body)
	if !change(v) {
		return nil
	}
	text, _ := json.Marshal(v) // no error: v was decoded from JSON
	return text
}

// dropNull removes the first null member of v.
func dropNull(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if v[name] == nil {
				delete(v, name)
				return true
			}
			if dropNull(v[name]) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, dropNull)
	}
	return false
}

// turn reverses the first array in v whose first and last elements differ.
func turn(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if turn(v[name]) {
				return true
			}
		}
	case []any:
		if n := len(v) - 1; n > 0 {
			first, _ := json.Marshal(v[0])
			last, _ := json.Marshal(v[n])
			if !bytes.Equal(first, last) {
				slices.Reverse(v)
				return true
			}
		}
		return slices.ContainsFunc(v, turn)
	}
	return false
}
