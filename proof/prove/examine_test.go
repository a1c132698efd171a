package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/proof/prove/fault"
)

// abandoned are the bookings whose process was killed, by key.
type abandoned map[string]*struct {
	at           string // their latitude
	since, until time.Time
}

// ticketEvery is how often the ticket of an abandoned booking comes, and completedAfter when it is completed.
const (
	ticketEvery    = 5 * time.Second
	completedAfter = 10 * time.Second
)

// matching are the items that a scan's filter lets by: conditions of equality, beginning and absence.
func (m *inMemory) matching(in *dynamodb.ScanInput) (all []map[string]types.AttributeValue) {
	for _, it := range m.items[*in.TableName] {
		fits := true
		for c := range strings.SplitSeq(aws.ToString(in.FilterExpression), " AND ") {
			switch words := strings.FieldsFunc(c, func(r rune) bool { return strings.ContainsRune(" =(),", r) }); {
			case len(words) == 0:
			case words[0] == "attribute_not_exists":
				fits = fits && it[words[1]] == nil
			case words[0] == "begins_with":
				fits = fits && strings.HasPrefix(text(it[words[1]]), text(in.ExpressionAttributeValues[words[2]]))
			default:
				fits = fits && text(it[words[0]]) == text(in.ExpressionAttributeValues[words[1]])
			}
		}
		if fits {
			all = append(all, it)
		}
	}
	return all
}

// more answers what the examinations ask beside.
func (m *inMemory) more(in any) (any, error) {
	switch in := in.(type) {
	case *dynamodb.PutItemInput:
		m.remove(*in.TableName, in.Item)
		m.items[*in.TableName] = append(m.items[*in.TableName], in.Item)
		return &dynamodb.PutItemOutput{}, nil
	case *dynamodb.DeleteItemInput:
		m.remove(*in.TableName, in.Key)
		return &dynamodb.DeleteItemOutput{}, nil
	case *dynamodb.BatchWriteItemInput:
		out := &dynamodb.BatchWriteItemOutput{}
		for table, all := range in.RequestItems {
			for i, w := range all {
				if i > 0 && len(all) == 25 || m.bug == "a table that takes nothing" { // it takes one of a full batch
					out.UnprocessedItems = map[string][]types.WriteRequest{table: all[i:]}
					break
				}
				m.remove(table, w.PutRequest.Item)
				m.items[table] = append(m.items[table], w.PutRequest.Item)
			}
		}
		return out, nil
	case *dynamodb.GetItemInput:
		m.deliver()
		if !aws.ToBool(in.ConsistentRead) && text(in.Key["pk"]) != "parked" {
			return &dynamodb.GetItemOutput{}, nil
		}
		if i := m.index(*in.TableName, in.Key); i >= 0 {
			return &dynamodb.GetItemOutput{Item: m.items[*in.TableName][i]}, nil
		}
		return &dynamodb.GetItemOutput{}, nil
	case *dynamodb.UpdateItemInput: // of a lease
		if text(in.Key["pk"]) == "parked" && m.bug == "a redrive that loses" {
			return nil, &types.ConditionalCheckFailedException{Item: redrivable("parked")}
		}
		if text(in.Key["pk"]) == "parked" {
			m.parked = m.bug == "a redrive that does nothing"
			return &dynamodb.UpdateItemOutput{Attributes: redrivable("parked")}, nil
		}
		a := m.abandoned[strings.TrimPrefix(text(in.Key["pk"]), "v1#rides#")]
		if a == nil {
			return nil, &types.ConditionalCheckFailedException{}
		}
		now, _ := strconv.ParseInt(text(in.ExpressionAttributeValues[":now"]), 10, 64)
		a.until = time.UnixMilli(now).Add(completedAfter)
		return &dynamodb.UpdateItemOutput{}, nil
	case *dynamodb.QueryInput: // of the people's list
		m.deliver()
		out := &dynamodb.QueryOutput{}
		if strings.HasPrefix(text(in.ExpressionAttributeValues[":wait"]), "parked#0") {
			out.Items = m.items["parked"]
		}
		return out, nil
	case *lambda.InvokeInput:
		return m.invoke(in)
	}
	return nil, fmt.Errorf("nobody knows %T", in)
}

func (m *inMemory) index(table string, key map[string]types.AttributeValue) int {
	return slices.IndexFunc(m.items[table], func(it map[string]types.AttributeValue) bool {
		return text(it["pk"]) == text(key["pk"]) && (key["pk"] != nil || text(it["id"]) == text(key["id"]))
	})
}

func (m *inMemory) remove(table string, key map[string]types.AttributeValue) {
	if i := m.index(table, key); i >= 0 {
		m.items[table] = slices.Delete(m.items[table], i, i+1)
	}
}

// record has the state of a booking's record, and why it is kept.
func (m *inMemory) record(key, state, keep string) {
	it := keyOf("v1#rides#" + key)
	m.remove("records", it)
	it["st"] = &types.AttributeValueMemberS{Value: state}
	if keep != "" {
		it["keep"] = &types.AttributeValueMemberS{Value: keep}
	}
	m.items["records"] = append(m.items["records"], it)
}

func (m *inMemory) happen(f fault.Fault) {
	// A process makes one call.
	if m.bug != "no fault" && m.bug != "no fault of "+f.Cell && (f.Kind != fault.Outside || f.Call == 1) {
		m.put("provider", fault.Happened+f.String(), map[string]string{"at": strconv.FormatInt(time.Now().UnixMilli(), 10)})
	}
}

// take is the time that a call takes.
func (m *inMemory) take(in any) {
	if in, ok := in.(*lambda.InvokeInput); ok && *in.FunctionName == "plain" {
		m.mu.Lock()
		n := m.starts
		m.starts++
		m.mu.Unlock()
		if n < startsAtOnce && m.bug != "a start that is none" {
			<-time.After(360 * time.Millisecond)
		}
		<-time.After(40 * time.Millisecond)
	}
}

func (m *inMemory) invoke(in *lambda.InvokeInput) (any, error) {
	out := &lambda.InvokeOutput{LogResult: aws.String("U1RBUlQ=")}
	switch {
	case m.bug == "a function that panics":
		out.FunctionError, out.Payload = aws.String("Unhandled"), []byte("panic")
	case *in.FunctionName == "plain":
		s := fault.Start{Events: 2}
		if m.starts <= startsAtOnce {
			s = fault.Start{Events: 1, Made: 90_000}
		}
		switch m.bug {
		case "a slow start of Samekey":
			s.Made++
		case "no later start":
			s.Events = 1
		}
		out.Payload, _ = json.Marshal(s)
	case string(in.Payload) == `{"source":"aws.scheduler","task":"sweep"}`:
		if m.bug != "a blind sweep" {
			m.swept = true
		}
		r := stream.Report{Scanned: len(m.items["records"]), Complete: m.bug != "a sweep without an end", ByReason: map[stream.Reason]stream.Tally{stream.ReasonUndelivered: {Count: 1}, stream.ReasonOpen: {Count: m.sweeps}}}
		m.sweeps++
		if m.bug == "a sweep that sees little" {
			r.Scanned = 10
		}
		if out.Payload, _ = json.Marshal(r); m.bug == "a sweep that says nothing" {
			out.Payload = nil
		}
	}
	return out, nil
}

// serve answers a request: at a fault, after which the process is gone, and again as before.
func (m *inMemory) serve(r *http.Request) *http.Response {
	raw, _ := io.ReadAll(r.Body)
	key, at := r.Header.Get("Idempotency-Key"), latitudeIn(raw)
	status, body, header := http.StatusCreated, "ride-"+key, http.Header{}
	switch f := fault.Parse(r.Header.Get(fault.Header)); {
	case m.bug == "no answer", m.bug == "no first answer" && strings.Contains(key, "before-1"):
		status, body = http.StatusInternalServerError, "down"
	case f.Kind == fault.Outside:
		if m.bug == "a role that allows" {
			f.Cell += "-allowed"
		}
		if !strings.HasPrefix(f.Cell, "worker") && !strings.HasPrefix(f.Cell, "receipts") {
			m.happen(f)
		}
		m.ride(key, body, at)
	case kills[f.Kind]:
		m.happen(f)
		if m.abandoned == nil {
			m.abandoned = abandoned{}
		}
		m.abandoned[key] = &struct {
			at           string
			since, until time.Time
		}{at, time.Now(), time.Now().Add(completedAfter)}
		m.record(key, "open", "")
		status, body = http.StatusBadGateway, "gone"
	case m.heard[key] == "":
		m.heard[key] = at
		delete(m.abandoned, key)
		if m.bug != "a lost ride" {
			m.ride(key, body, at)
		}
		if m.bug == "a ride made twice" {
			m.ride(key, body+"-again", at)
		}
	case m.heard[key] != at && m.bug != "a key for everything":
		status, body = http.StatusUnprocessableEntity, "another"
	case m.bug == "another replay":
		body += "!"
	default:
		header.Set("Replayed", "true")
	}
	if m.bug == "another status" && status == http.StatusCreated {
		status = http.StatusOK
	}
	if m.bug == "another answer" {
		body = "yours"
	}
	if r.Header.Get(fault.Header) == fault.Measured {
		m.starts++
		f := m.measured
		f.Took, f.Floor = int64(1000*(m.starts*8%rounds)), int64(100*(m.starts*8%rounds))
		raw, _ := json.Marshal(f)
		header.Set(fault.Header, string(raw))
	}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

// kills are the faults of a request after which its process is gone.
var kills = map[fault.Kind]bool{fault.Before: true, fault.After: true, fault.Lose: true, fault.Hang: true, fault.Memory: true, fault.Answered: true}

// come has tickets of abandoned bookings come, and completes what nobody holds.
func (m *inMemory) come() {
	if m.bug == "nobody completes" {
		return
	}
	for key, a := range m.abandoned {
		every := cmp.Or(map[string]time.Duration{"slow tickets": 13 * time.Second, "late tickets": 100 * time.Second}[m.bug], ticketEvery)
		n := int(time.Since(a.since) / every)
		if most, ok := map[string]int{"no ticket": 0, "one ticket": 1, "a chain that ends": chain}[m.bug]; ok {
			n = min(n, most)
		}
		if n > 0 {
			counted := n
			if m.bug == "a late count" {
				counted = int((time.Since(a.since) - 2*time.Second) / every)
			}
			id := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: fault.Received + "v1#rides#" + key}}
			m.remove("provider", id)
			m.put("provider", text(id["id"]), map[string]string{"times": strconv.Itoa(counted)})
			if n > 1 || m.bug != "late tickets" {
				m.wait("worker", fault.Unhidden, fault.Answered)
			}
		}
		ended := m.swept || !time.Now().Before(a.until) || m.bug == "an operation that ends" && n > 2 || m.bug == "a stream that brings operations"
		if (!m.losing() || m.bug == "a stream that brings operations") && ended && m.bug != "an operation that stays" {
			delete(m.abandoned, key)
			m.ride(key, "ride-"+key, a.at)
		}
	}
}

// losing: the stream brings nothing, until a sweep looks.
func (m *inMemory) losing() bool {
	return !m.swept && m.bug != "a stream that loses nothing" && m.index("provider", map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: fault.Lost}}) >= 0
}

// wait has a fault of these kinds happen that waits for a role.
func (m *inMemory) wait(role string, kinds ...fault.Kind) (f fault.Fault, waits bool) {
	id := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: fault.Waiting + role}}
	i := m.index("provider", id)
	if i < 0 {
		return f, false
	}
	if f = fault.Parse(text(m.items["provider"][i]["fault"])); !slices.Contains(kinds, f.Kind) || f.Call == 1 && (m.bug == "one refusal less" || m.bug == "another batch in part") {
		return f, false
	}
	m.remove("provider", id)
	if f.Kind == fault.Outside && (m.bug == "a role that allows" || m.bug == "a role that allows of "+role) {
		f.Cell += "-allowed"
	}
	m.happen(f)
	return f, true
}

// work reports whether jobs are delivered now.
func (m *inMemory) work() bool {
	for i, it := range m.items["records"] {
		switch pk := text(it["pk"]); {
		case strings.HasPrefix(pk, fault.Unneeded) && m.bug == "no filter":
			m.happen(fault.Fault{Kind: fault.Came, Cell: "worker"})
		case strings.HasPrefix(pk, fault.Poison) && text(it["st"]) == "open":
			records, most := "{}", len(m.heard)+1
			switch m.bug {
			case "a batch of its own":
				most = 1
			case "others with it":
				records = "{},{}"
			}
			m.happen(fault.Fault{Kind: fault.Poisoned, Call: most, Cell: "worker"})
			m.poisoned = time.Now()
			if m.bug != "nothing is given up" {
				raw, _ := json.Marshal(map[string]string{"Payload": fmt.Sprintf(`{"about":%q,"Records":[%s]}`, pk, records)})
				m.givenUp = [][]byte{[]byte(`{"Payload":"another"}`), raw}
			}
			it = maps.Clone(it)
			it["st"] = &types.AttributeValueMemberS{Value: "seen"}
			m.items["records"][i] = it
		}
	}
	if m.losing() || m.parked || len(m.booked) == 0 {
		return false
	}
	m.wait("worker", fault.Before, fault.After, fault.Outside)
	m.wait("receipts", fault.Before, fault.After, fault.Outside)
	return m.refuses()
}

// refuses counts the refusals of a job, one in a second, and reports whether it goes on then.
func (m *inMemory) refuses() bool {
	if time.Now().Equal(m.refused) {
		return false
	}
	f, waits := m.wait("worker", fault.Refuse)
	if !waits {
		return true
	}
	m.refused = time.Now()
	if f.Call--; f.Call > 0 {
		m.put("provider", fault.Waiting+"worker", map[string]string{"fault": f.String()})
	} else if f.Cell == "parked" && slices.Contains(slices.Collect(maps.Values(m.heard)), fmt.Sprint(latitude(parkedPlace))) {
		m.parked = true
		it := parkedItem("b")
		switch m.bug {
		case "another's record":
			it["pk"] = m.items["parked"][0]["pk"]
		case "another's id":
			it["id"] = m.items["parked"][0]["id"]
		}
		if m.bug != "a list without it" && m.bug != "neither a list nor a look" {
			m.items["parked"] = append(m.items["parked"], it)
		}
	} else if f.Cell == "partial" && m.bug != "batches done whole" {
		m.happen(fault.Fault{Kind: fault.Partial, Cell: "worker"})
	}
	return false
}

func parkedItem(pk string) map[string]types.AttributeValue {
	it := keyOf(pk)
	it["id"] = &types.AttributeValueMemberS{Value: "id-" + pk}
	it["wait_ms"] = &types.AttributeValueMemberN{Value: "1"}
	it["tries"] = &types.AttributeValueMemberN{Value: "5"}
	return it
}

// redrivable is the record of a parked job.
func redrivable(pk string) map[string]types.AttributeValue {
	s := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	n := func(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
	of := func(it map[string]types.AttributeValue) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: it}
	}
	return map[string]types.AttributeValue{
		"v": n("1"), "pk": s(pk), "id": s("id-" + pk), "owner": s("o"), "ver": n("2"), "fp": s("f"), "created_ms": n("1"), "st": s("done"), "keep": s("jobs"),
		"resp": of(map[string]types.AttributeValue{"s": n("201")}), "jobs": of(map[string]types.AttributeValue{"0.0": of(map[string]types.AttributeValue{"k": s("mail"), "a": s("{}"), "f": s("down"), "t": n("5")})}),
	}
}

// set has the stack as the claims before leave it.
func (m *inMemory) set(p *Place, claim string) {
	p.Timeout = localTimeout
	ended := keyOf("v1#plain#1")
	ended["st"] = &types.AttributeValueMemberS{Value: "done"}
	m.items["records"] = append(m.items["records"], ended)
	for _, a := range ways() {
		if claim == "figures."+a.name {
			m.measured = fault.Figures{Calls: a.calls, Units: float64(a.units), Own: float64(a.own), Refused: a.refused}
		}
	}
	if claim == "background.redriven" && m.bug != "no parked job" {
		p.parked = &stream.Entry{PK: "parked", ID: "id-parked"}
		m.ride("parked", "ride-parked", fmt.Sprint(latitude(parkedPlace)))
		m.items["records"], m.parked = append(m.items["records"], redrivable("parked")), true
		if m.bug == "no record" {
			m.items["records"] = nil
		}
	}
	if claim == "background.parked" {
		m.items["parked"] = append(m.items["parked"], parkedItem("another"))
	}
	switch m.bug {
	case "on this machine":
		p.Local, m.bug = true, "nothing is given up"
	case "given up on this machine":
		p.Local = true
	case "no table":
		p.Records = ""
	case "another operation's record":
		p.parked.ID = "another"
	case "another job waits":
		m.record("another", "done", "jobs")
	case "no API":
		p.API, p.StandIn = "", "another"
	case "another call":
		m.measured.Calls = []string{"GetItem"}
	case "more units":
		m.measured.Units++
	case "more units of its own":
		m.measured.Own++
	case "more refusals":
		m.measured.Refused++
	case "no floor":
		m.measured.Trouble = "no calls"
	}
}

// examined is the outcome of a claim in this stack.
func (m *inMemory) examined(ctx context.Context, t *testing.T, name string) Result {
	t.Helper()
	all := Claims()
	i := slices.IndexFunc(all, func(c Claim) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no claim %s", name)
	}
	p := m.place()
	m.set(p, name)
	planned := all[i].Cost
	if m.bug == "a smaller plan" {
		planned.Bookings = 1
	}
	p.meter.begin(planned)
	figure, err := all[i].Examine(ctx, p)
	r := all[i].judge(p, figure, err)
	if name == "background.redriven" && r.Status == Passed && p.redrivenAt.IsZero() {
		t.Error("nobody knows when the job was redriven")
	}
	if r.Status == Passed && !all[i].figure().MatchString(r.Figure) {
		t.Errorf("%s passes with %q", name, r.Figure)
	}
	return r
}

// What a stack loses, doubles or leaves undone fails the claim about it, and what didn't happen shows nothing.
func TestExaminations(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ claim, bug, want string }{
		{"crash.api.before", "", "passed: 5 faults met, 0 lost, 0 doubled, 0 wrong; 667ms"},
		{"crash.api.before", "a lost ride", "failed: before 1 api: ride lost, audit record lost, charge lost, mail lost, ride with its charge lost; before 2 api: ride lost, audit record lost, charge lost, mail lost, ride with its charge lost; before 3 api: ride lost, audit record lost, charge lost, mail lost, ride with its charge lost; before 4 api: ride lost, audit record lost, charge lost, mail lost, ride with its charge lost; before 5 api: ride lost, audit record lost, charge lost, mail lost, ride with its charge lost; 55.667s"},
		{"crash.api.answered", "a lost job", "failed: answered 1 api: mail lost; 55.333s"},
		{"crash.api.answered", "a ride made twice", "failed: answered 1 api: ride made 2 times, audit record made 2 times, charge made 2 times, ride with its charge made 2 times; answered 1 api: the answer is 201: ride-samekey-prove-answered-1-0123456789abcdef; 333ms"},
		{"crash.api.answered", "another answer", "failed: answered 1 api: the answer is 201: yours; 333ms"},
		{"crash.api.answered", "another replay", "failed: answered 1 api: the replay is 201, ride-samekey-prove-answered-1-0123456789abcdef! (<nil>); 333ms"},
		{"crash.api.answered", "no answer", "failed: answered 1 api: ride lost, audit record lost, charge lost, mail lost, ride with its charge lost; answered 1 api: no answer after 12 requests, the last one is 500: down; 1m21s"},
		{"crash.api.answered", "no fault", "not shown: these faults were never met: answered 1 api; 333ms"},
		{"crash.api.memory", "", "passed: 1 faults met, 0 lost, 0 doubled, 0 wrong; 333ms"},
		{"crash.worker", "", "passed: 4 faults met, 0 lost, 0 doubled, 0 wrong; 0s"},
		{"crash.api.answered", "another status", "failed: answered 1 api: the answer is 200: ride-samekey-prove-answered-1-0123456789abcdef; 333ms"},
		{"crash.api.answered", "a torn replay", "failed: answered 1 api: the replay is 201, ride-samekey-prove-answered-1-0123456789abcdef (half an answer); 333ms"},
		{"crash.api.answered", "a late charge", "passed: 1 faults met, 0 lost, 0 doubled, 0 wrong; 5.333s"},
		{"crash.worker", "no API", "not shown: the stand-in doesn't serve the API at its URL; 0s"},
		{"crash.worker", "no first answer", "failed: before 1 worker: ride lost, audit record lost, charge lost, mail lost, ride with its charge lost; before 1 worker: no answer after 12 requests, the last one is 500: down; 2m16s"},
		{"crash.worker", "no fault", "not shown: these faults were never met: before 1 worker, after 1 worker, before 2 worker, after 2 worker; 3m40s"},
		{"crash.consumer", "", "passed: 6 faults met, 0 lost, 0 doubled, 0 wrong; 0s"},
		{"crash.consumer", "a job delivered twice", "failed: before 1 receipts: mail made 2 times; after 1 receipts: mail made 2 times; before 2 receipts: mail made 2 times; after 2 receipts: mail made 2 times; before 3 receipts: mail made 2 times; after 3 receipts: mail made 2 times; 0s"},
		{"background.completion", "", "passed: 10 s after the kill; 10s"},
		{"background.completion", "nobody completes", "failed: after 54s: ride lost, audit record lost, charge lost, mail lost, ride with its charge lost; 55s"},
		{"background.completion", "no fault", "not shown: the process was not killed; 10s"},
		{"background.completion", "no API", "not shown: the stand-in doesn't serve the API at its URL; 0s"},
		{"background.completion", "a line that breaks", "passed: 10 s after the kill; 10s"},
		{"background.delivery", "", "passed: at most 1 s after the answer; 0s"},
		{"background.delivery", "a lost job", "failed: after the answer 201: mail lost; 55s"},
		{"background.delivery", "no answer", "not shown: no answer after 12 requests, the last one is 500: down; 26s"},
		{"background.filter", "", "passed: a job came within 6 s, and it didn't; 6s"},
		{"background.filter", "no filter", "failed: an item without a state came to the worker; 0s"},
		{"background.filter", "a lost job", "not shown: no job came either; 55s"},
		{"background.filter", "no answer", "not shown: no answer after 12 requests, the last one is 500: down; 26s"},
		{"background.parked", "", "passed: 4 s after the answer, and 5 refusals; 4s"},
		{"background.parked", "a list without it", "failed: it was refused 5 times, and isn't on the list; 5m1s"},
		{"background.parked", "neither a list nor a look", "not shown: AccessDenied: no; 5m1s"},
		{"background.parked", "no table", "not shown: dynamo: New: table is empty; pass its name (is the function's environment variable set?); 0s"},
		{"background.parked", "another's id", "passed: 4 s after the answer, and 5 refusals; 4s"},
		{"background.parked", "another's record", "passed: 4 s after the answer, and 5 refusals; 4s"},
		{"background.parked", "one refusal less", "not shown: the job was not refused 5 times in 5m0s; 5m1s"},
		{"background.parked", "a lost job", "not shown: the job was not refused 5 times in 5m0s; 5m1s"},
		{"background.parked", "no answer", "not shown: no answer after 12 requests, the last one is 500: down; 26s"},
		{"background.partial", "", "passed: delivered 2 s after it was deleted; 2s"},
		{"background.partial", "batches done whole", "failed: no batch was answered in part; 55s"},
		{"background.partial", "a lost job", "not shown: no job was refused; 55s"},
		{"background.partial", "a job delivered twice", "failed: mail made 2 times; 55s"},
		{"background.partial", "no answer", "not shown: no answer after 12 requests, the last one is 500: down; 26s"},
		{"background.partial", "one refusal less", "not shown: the job of the deleted record was not refused; 55s"},
		{"background.partial", "another batch in part", "not shown: the job of the deleted record was not refused; 55s"},
		{"background.partial", "another job waits", "not shown: there are several such records; 0s"},
		{"background.partial", "no fault", "not shown: no job was refused; 55s"},
		{"background.bisected", "", "passed: 60 s later, of a batch of 9; 1m0s"},
		{"background.bisected", "a batch of its own", "not shown: the item came in a batch of its own; 1m0s"},
		{"background.bisected", "others with it", "failed: others were given up with it; 1m0s"},
		{"background.bisected", "nothing is given up", "not shown: it isn't given up within 10m0s; 10m3s"},
		{"background.bisected", "a lost job", "not shown: the item didn't come to the worker; 10m58s"},
		{"background.bisected", "no fault", "not shown: the item didn't come to the worker; 1m0s"},
		{"background.bisected", "a lost neighbour", "failed: not all of its neighbours' jobs were delivered; 1m55s"},
		{"background.bisected", "no answer", "not shown: it would cost more than was planned: 25 requests to the API, of 24 that were planned; 2s"},
		{"background.bisected", "on this machine", "failed: it isn't given up within 10m0s; 10m3s"},
		{"background.bisected", "given up on this machine", "passed: 60 s later, of a batch of 9; 1m0s"},
		{"background.bisected", "no API", "not shown: the stand-in doesn't serve the API at its URL; 0s"},
		{"background.redriven", "", "passed: 0 s after the redrive; 0s"},
		{"background.redriven", "no record", "failed: 0 jobs were redriven; 0s"},
		{"background.redriven", "no parked job", "not shown: no job is parked; 0s"},
		{"background.redriven", "no table", "not shown: dynamo: New: table is empty; pass its name (is the function's environment variable set?); 0s"},
		{"background.redriven", "another operation's record", "failed: 0 jobs were redriven; 0s"},
		{"background.redriven", "a redrive that loses", "failed: 0 jobs were redriven; 0s"},
		{"background.redriven", "a redrive that does nothing", "failed: mail lost; 55s"},
		{"background.sweep", "", "passed: among 63 records, 4 s after they were lost, by 1 runs; 4.167s"},
		{"background.sweep", "a stream that loses nothing", "not shown: the stream didn't lose them, or nobody was killed; 4.167s"},
		{"background.sweep", "a stream that brings operations", "not shown: the stream didn't lose them, or nobody was killed; 4.167s"},
		{"background.sweep", "a line that breaks", "passed: among 63 records, 4 s after they were lost, by 1 runs; 4.167s"},
		{"background.sweep", "a smaller plan", "not shown: it would cost more than was planned: 2 requests to the API, of 1 that were planned; 0s"},
		{"background.sweep", "a sweep that says nothing", "not shown: unexpected end of JSON input; 4.167s"},
		{"background.sweep", "no look after a sweep", "not shown: AccessDenied: no; 4.167s"},
		{"background.sweep", "a blind sweep", "failed: of the job: mail lost; of the operation: ride lost, audit record lost, charge lost, mail lost, ride with its charge lost; 1m54.167s"},
		{"background.sweep", "a sweep that sees little", "failed: a pass has seen 10 records, of more than 60; 8.167s"},
		{"background.sweep", "a sweep without an end", "not shown: after 60 runs, of the job: ; of the operation: ; 2m4.167s"},
		{"background.sweep", "a table that takes nothing", "not shown: DynamoDB doesn't take all items; 11.867s"},
		{"background.sweep", "a function that panics", "not shown: Unhandled: panic; 4.167s"},
		{"background.sweep", "no fault", "not shown: the stream didn't lose them, or nobody was killed; 4.167s"},
		{"background.sweep", "no answer", "not shown: no answer after 12 requests, the last one is 500: down; 26s"},
		{"probe.waiting-ticket", "", "passed: it came 20 times, and its operation was completed 9 s after the last; 1m49s"},
		{"probe.waiting-ticket", "no ticket", "not shown: no ticket came; 1m49s"},
		{"probe.waiting-ticket", "a chain that ends", "failed: its message came 16 times, and then no more; 3m9s"},
		{"probe.waiting-ticket", "an operation that stays", "failed: after its message came 20 times: its operation isn't completed; 2m34s"},
		{"probe.waiting-ticket", "no answer", "not shown: the booking's answer was 500: there is no such record; 0s"},
		{"probe.waiting-ticket", "no API", "not shown: the stand-in doesn't serve the API at its URL; 0s"},
		{"probe.waiting-ticket", "a line that breaks", "passed: it came 20 times, and its operation was completed 9 s after the last; 1m49s"},
		{"probe.waiting-ticket", "slow tickets", "not shown: its message came 18 times within 240 s; 4m0s"},
		{"probe.waiting-ticket", "an operation that ends", "not shown: the operation was completed while its lease was held; 16s"},
		{"probe.unhidden", "late tickets", "not shown: it didn't come again within 240 s; 4m0s"},
		{"probe.unhidden", "a late count", "passed: again 7 s later; 21s"},
		{"probe.unhidden", "", "passed: again 5 s later; 19s"},
		{"probe.unhidden", "no ticket", "not shown: the worker didn't meet unhidden 1 ticket; 1m49s"},
		{"probe.unhidden", "one ticket", "failed: it doesn't come again; 1m54s"},
		{"probe.unhidden", "an operation that stays", "failed: its operation isn't completed; 1m4s"},
		{"probe.unhidden", "no fault", "not shown: the worker didn't meet unhidden 1 ticket; 4m0s"},
		{"probe.ended", "", "passed: again 5 s later; 19s"},
		{"roles.outside", "", "passed: 3 roles; 0s"},
		{"roles.outside", "a role that allows", "failed: not to api, worker, receipts; 0s"},
		{"roles.outside", "a role that allows of worker", "failed: not to worker; 0s"},
		{"roles.outside", "no fault of receipts", "not shown: these made no call: receipts; 55s"},
		{"roles.outside", "no fault", "not shown: these made no call: api, worker, receipts; 2m45s"},
		{"figures.start", "", "passed: 400 ms for a first answer, 40 ms for a later one; 90000 µs of the start are Samekey's; 560ms"},
		{"figures.start", "a slow start of Samekey", "failed: 90001 µs of 360 ms are Samekey's; 560ms"},
		{"figures.start", "no later start", "not shown: 4 first answers, 0 later ones; 560ms"},
		{"figures.start", "a function that panics", "not shown: Unhandled: panic; 400ms"},
		{"figures.start", "a start that is none", "failed: 90000 µs of 0 ms are Samekey's; 200ms"},
		{"figures.new", "", "passed: 2 calls, 2 write units, 1.25 dollars a million; 10000 µs in the function, 1000 µs for the same calls by the SDK alone; 0s"},
		{"figures.new", "another call", "failed: GetItem, 0 refused, 2 write units and 0 of its own items; 0s"},
		{"figures.new", "more units", "failed: PutItem, UpdateItem, 0 refused, 3 write units and 0 of its own items; 0s"},
		{"figures.new", "more units of its own", "failed: PutItem, UpdateItem, 0 refused, 2 write units and 1 of its own items; 0s"},
		{"figures.new", "more refusals", "failed: PutItem, UpdateItem, 1 refused, 2 write units and 0 of its own items; 0s"},
		{"figures.new", "no floor", "not shown: no calls; 0s"},
		{"figures.new", "no answer", "not shown: the answer is 500: down; 0s"},
		{"figures.new", "no API", "not shown: the stand-in doesn't serve the API at its URL; 0s"},
		{"figures.replay", "", "passed: 1 calls, refused; 10000 µs in the function, 1000 µs for the same calls by the SDK alone; 0s"},
		{"figures.replay", "no answer", "not shown: the answer is 500: down; 0s"},
		{"figures.phases", "", "passed: 3 calls, 5 write units and 4 of its own items, 3.125 dollars a million; 10000 µs in the function, 1000 µs for the same calls by the SDK alone; 0s"},
		{"crash.api.answered", "no API", "not shown: the stand-in doesn't serve the API at its URL; 0s"},
	} {
		var got string
		synctest.Test(t, func(t *testing.T) {
			m := newInMemory()
			m.bug = test.bug
			began := time.Now()
			r := m.examined(t.Context(), t, test.claim)
			if test.bug == "no API" && test.claim == "background.bisected" && m.calls > 0 {
				t.Errorf("%s makes %d calls", test.claim, m.calls)
			}
			why, _, _ := strings.Cut(cmp.Or(r.Why, r.Figure), "\n")
			got = fmt.Sprintf("%s: %s; %s", r.Status, why, time.Since(began).Round(time.Millisecond))
			for _, it := range slices.Concat(m.items["records"], m.items["provider"]) {
				if id := text(it["pk"]) + text(it["id"]); strings.HasPrefix(test.claim, "probe.") && strings.HasPrefix(id, fault.Waiting) || strings.HasPrefix(id, fault.Unneeded) || strings.HasPrefix(id, fault.Poison) || strings.HasPrefix(id, fault.Lost) {
					t.Errorf("%s leaves %s", test.claim, id)
				}
			}
		})
		if got != test.want {
			t.Errorf("%s, %q: %s", test.claim, test.bug, got)
		}
	}
}

// A call that is refused, or at which the run is ended, shows nothing: the claim doesn't fail, nor does it pass. The
// last calls of some only undo.
func TestNothingIsShown(t *testing.T) {
	t.Parallel()
	for name, undone := range map[string]int{
		"background.completion": 0, "background.delivery": 0, "background.filter": 1, "background.parked": 0, "background.partial": 0, "background.bisected": 2, "background.redriven": 0,
		"background.sweep": 1, "probe.waiting-ticket": 0, "probe.unhidden": 1, "roles.outside": 0, "roles.enough": 0, "figures.start": 0, "crash.worker": 0, "alarms.worker-errors": 0, "alarms.parked-ends": 0,
	} {
		whole := 1000
		for n := 0; n <= whole; n++ {
			if n > 30 && n < whole-12 {
				n = whole - 12
			}
			for _, ended := range []bool{false, true} {
				var r Result
				calls := 0
				synctest.Test(t, func(t *testing.T) {
					m := newInMemory()
					ctx, end := context.WithCancel(t.Context())
					defer end()
					m.refuse = func(i int) error {
						switch {
						case n == 0 || i < n:
							return nil
						case ended:
							end()
							return ctx.Err()
						case i == n:
							return refusal("AccessDenied", "no")
						}
						return nil
					}
					r = m.examined(ctx, t, name)
					if calls = m.calls; n == 0 {
						whole = calls
					}
				})
				said := ended || strings.Contains(r.Why, "AccessDenied: no")
				again := r.Status == Passed && calls > whole // the store itself has made the call again
				if n == 0 && strings.Contains(r.Why, "AccessDenied") || n > 0 && n <= whole-undone && !again && (r.Status != NotShown || !said) {
					t.Errorf("%s at call %d of %d, ended: %t: %+v", name, n, whole, ended, r)
				}
			}
		}
	}
}

// Who ends a run is told at once why, wherever it waits.
func TestEnded(t *testing.T) {
	t.Parallel()
	const why = "the run reached its limit"
	for _, test := range []struct{ claim, bug string }{
		{"background.completion", ""},
		{"background.delivery", "no answer"},
		{"background.filter", ""},
		{"background.parked", ""},
		{"background.partial", "batches done whole"},
		{"background.bisected", ""},
		{"background.sweep", "a table that takes nothing"},
		{"background.sweep", "a sweep that sees little"},
		{"crash.api.answered", "no answer"},
		{"crash.throttled", ""},
		{"crash.throttled", "a lost job"},
		{"probe.waiting-ticket", ""},
		{"probe.unhidden", ""},
	} {
		var whole time.Duration
		for _, limit := range []func() time.Duration{
			func() time.Duration { return time.Hour }, func() time.Duration { return 500 * time.Millisecond }, func() time.Duration { return whole - 500*time.Millisecond },
		} {
			synctest.Test(t, func(t *testing.T) {
				m := newInMemory()
				m.bug = test.bug
				ctx, cancel := context.WithTimeoutCause(t.Context(), limit(), errors.New(why))
				defer cancel()
				r := m.examined(ctx, t, test.claim)
				if ctx.Err() == nil {
					whole = time.Since(m.began)
					return
				}
				for line := range strings.Lines(r.Why) {
					line = strings.TrimSpace(line)
					if r.Status != NotShown || !strings.HasSuffix(line, why) && line != "DynamoDB doesn't take all items" {
						t.Errorf("%s, %q, ended after %s: %+v", test.claim, test.bug, limit(), r)
					}
				}
			})
		}
	}
}

// What is ended when all has been heard shows nothing.
func TestEndedBeforeCount(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	end()
	if figure, err := newInMemory().place().count(ctx, []answers{{}}); !dark(err) {
		t.Error(figure, err)
	}
}

// Records are looked for in no more pages than needed.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		records int
		want    string
	}{
		{0, "1 calls: there is no such record; 1 calls: no record has ended"},
		{1, "1 calls: <nil>; 1 calls: <nil>"},
		{2, "2 calls: there are several such records; 1 calls: <nil>"},
		{5, "2 calls: there are several such records; 1 calls: <nil>"},
	} {
		m := newInMemory()
		m.page = 1
		for i := range test.records {
			it := keyOf(fmt.Sprint("v1#plain#", i))
			it["st"] = &types.AttributeValueMemberS{Value: "done"}
			m.items["records"] = append(m.items["records"], it)
		}
		p := m.place()
		p.Swept = 0
		_, err1 := p.one(t.Context(), "st = :done", map[string]types.AttributeValue{":done": &types.AttributeValueMemberS{Value: "done"}})
		n := m.calls
		err2 := p.fill(t.Context())
		if got := fmt.Sprintf("%d calls: %v; %d calls: %v", n, err1, m.calls-n, err2); got != test.want {
			t.Errorf("%d records: %s", test.records, got)
		}
	}
}

// A batch that was given up is looked for by its record, and counted.
func TestAlone(t *testing.T) {
	t.Parallel()
	const one, two = `{"Payload":"{\"Records\":[{\"pk\":\"p\"}]}"}`, `{"Payload":"{\"Records\":[{\"pk\":\"p\"},{}]}"}`
	for _, test := range []struct {
		batches []string
		err     error
		want    string
	}{
		{nil, nil, "false false <nil>"},
		{[]string{`{"Payload":"another"}`}, nil, "false false <nil>"},
		{[]string{`{"Payload":"another"}`, one}, nil, "true true <nil>"},
		{[]string{two, one}, nil, "false true <nil>"},
		{[]string{"{"}, nil, "false false unexpected end of JSON input"},
		{[]string{`{"Payload":"p"}`}, nil, "false false invalid character 'p' looking for beginning of value"},
		{nil, errNoAPI, "false false " + errNoAPI.Error()},
	} {
		p := &Place{GivenUp: func(context.Context) (all [][]byte, _ error) {
			for _, b := range test.batches {
				all = append(all, []byte(b))
			}
			return all, test.err
		}}
		alone, ever, err := p.alone(t.Context(), "p")
		if got := fmt.Sprint(alone, ever, err); got != test.want {
			t.Errorf("%s: %s", test.batches, got)
		}
	}
}

// The largest batch is that of the kind, and the first of its size.
func TestLargest(t *testing.T) {
	t.Parallel()
	m := newInMemory()
	for i, id := range []string{fault.Happened + "poisoned 2 w", fault.Happened + "poisoned 3 w", fault.Happened + "poisoned 3 x", fault.Happened + "refuse 9 w", "poisoned 9 w"} {
		m.put("provider", id, map[string]string{"at": strconv.Itoa(1000 * i)})
	}
	if n, at := (world{provider: m.items["provider"]}).largest(fault.Poisoned); n != 3 || !at.Equal(time.UnixMilli(1000)) {
		t.Error(n, at)
	}
}
