package ui

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/dbfault"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/itemjson"
	"github.com/samekey/samekey/seal"
)

// roundTrip is a function as an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// kept is a table in memory with one record, and the source of the page.
type kept struct {
	*Table
	client *dynamodb.Client
	writer *dynamo.Store // the application's store
	// fault injects faults into requests; nil injects none.
	fault func(op string) dbfault.Fault
}

func keep(t *testing.T, rec *store.Record, sealed, pages seal.Provider) *kept {
	t.Helper()
	k := &kept{}
	server := &fakedynamo.Server{}
	k.client = dynamodb.New(dynamodb.Options{
		Region: "eu-central-1", Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""), Retryer: aws.NopRetryer{},
		HTTPClient: &http.Client{Transport: &dbfault.Transport{Base: roundTrip(server.Do), Fault: func(op string, _ int) dbfault.Fault {
			if k.fault == nil {
				return nil
			}
			return k.fault(op)
		}}},
	})
	opt := TableOptions{By: "jane", Place: "table of orders"}
	if pages != nil {
		opt.Seal = seal.New(pages)
	}
	table, err := NewTable(k.client, "orders", opt)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := dynamo.New(k.client, "orders", func(o *dynamo.Options) {
		if sealed != nil {
			o.Seal = seal.New(sealed)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	k.Table, k.writer = table, writer
	k.add(t, rec)
	return k
}

func (k *kept) add(t *testing.T, rec *store.Record) {
	t.Helper()
	if held, err := k.writer.Claim(t.Context(), store.Claim{Next: rec, Now: time.Now()}); err != nil || held != nil {
		t.Fatal(held, err)
	}
}

// act acts on the record as the page shows it now.
func (k *kept) act(t *testing.T, a Action) (string, error) {
	t.Helper()
	return k.Act(t.Context(), k.seen(t, a))
}

func (k *kept) seen(t *testing.T, a Action) Action {
	t.Helper()
	s, err := k.Story(t.Context(), "v1#rides#a", false)
	if err != nil {
		t.Fatal(err)
	}
	a.PK, a.Seen, a.By = cmp.Or(a.PK, s.PK), cmp.Or(a.Seen, s.Seen), "jane"
	return a
}

// stuckNow returns a stuck record with a recent claim, which a sweep finds.
func stuckNow() *store.Record {
	r := rides()["stuck"]
	r.Created, r.Run = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
	return r
}

// closed is a provider of keys that opens no key.
type closed struct{ seal.Provider }

func (closed) Open(context.Context, string, []byte) ([]byte, error) {
	return nil, errors.New("AccessDenied")
}

// An act returns what it did, or the reason for a refusal, and so does
// the question before. It logs nothing.
func TestActs(t *testing.T) {
	var log strings.Builder
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(old) })
	key := sha256.Sum256([]byte("the desk's"))
	keys, err := seal.NewStatic("desk", map[string][]byte{"desk": key[:]})
	if err != nil {
		t.Fatal(err)
	}
	answer := Action{Do: "settle", Status: 201}
	missing := dbfault.AnswerError(400, "ResourceNotFoundException", "injected")
	for name, tt := range map[string]struct {
		do            Action
		sealed, pages seal.Provider
		fault         func(k *kept, op string) dbfault.Fault
		is            error
		asks, says    string // asks: text of the question; "" means that the question returns says
	}{
		"done":    {do: answer, asks: "The change is in table of orders.", says: "done: the client gets 201 from now on"},
		"no call": {do: Action{Do: "retry", NotMade: true}, is: ErrRefused, says: "refused: the operation has no call in doubt"},
		"no jobs": {do: Action{Do: "cancel"}, is: ErrRefused, says: "refused: nothing to cancel: only a later job whose delivery has not begun can be cancelled"},
		"gone":    {do: Action{Do: "settle", Status: 201, PK: "v1#rides#none"}, is: ErrGone, says: "no such record"},
		"changed": {do: Action{Do: "settle", Status: 201, Seen: "another"}, is: ErrMoved, says: "the record has changed since it was shown: nothing was changed. Look at the record again"},
		"changes": {do: answer, is: ErrMoved, asks: "The change is in", says: "the record has changed since it was shown: nothing was changed. Look at the record again", fault: func(k *kept, op string) dbfault.Fault {
			if op == "GetItem" {
				return nil
			}
			return func(base http.RoundTripper, r *http.Request) (*http.Response, error) {
				k.fault = nil
				if _, err := k.act(t, Action{Do: "retry"}); err != nil {
					t.Error(err)
				}
				return base.RoundTrip(r)
			}
		}},
		"unknown": {do: answer, is: store.ErrUnknown, asks: "The change is in", says: "the change may have been made. Look at the record again", fault: func(k *kept, op string) dbfault.Fault {
			if op == "GetItem" {
				return nil
			}
			k.fault = func(string) dbfault.Fault { return dbfault.LoseRequest }
			return dbfault.LoseAnswer
		}},
		"no table": {do: answer, says: "no table orders in this account and Region", fault: func(*kept, string) dbfault.Fault { return missing }},
		"no table to write to": {do: answer, asks: "The change is in", says: "no table orders in this account and Region", fault: func(_ *kept, op string) dbfault.Fault {
			if op == "GetItem" {
				return nil
			}
			return missing
		}},
		"no keys": {
			do: answer, sealed: keys, is: ErrRefused, asks: "The change is in",
			says: "refused: The record is sealed, and the page has no data key. Start samekey ui with --keys-from set to a program that has the keys. Nothing was changed, because the page needs the data key to store an answer or a result",
		},
		"no right": {do: answer, sealed: keys, pages: closed{keys}, is: ErrRefused, asks: "The change is in", says: "refused: The record is sealed, and the page has no data key, because the program of --keys-from failed: "},
	} {
		k := keep(t, stuckNow(), tt.sealed, tt.pages)
		do := k.seen(t, tt.do)
		if tt.fault != nil {
			k.fault = func(op string) dbfault.Fault { return tt.fault(k, op) }
		}
		for _, does := range []struct {
			says string
			do   func(context.Context, Action) (string, error)
		}{{cmp.Or(tt.asks, tt.says), k.Ask}, {tt.says, k.Act}} {
			said, err := does.do(t.Context(), do)
			if err != nil {
				said = err.Error()
			}
			if failed := does.says == tt.says && name != "done"; (err != nil) != failed || failed && tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(said, does.says) {
				t.Errorf("%s: %q, %v, want %q", name, said, err, does.says)
			}
		}
	}
	k := keep(t, stuckNow(), nil, nil)
	k.opt.Place = ""
	if asks, err := k.Ask(t.Context(), k.seen(t, answer)); err != nil || strings.Contains(asks, "The change is in") {
		t.Errorf("%q, %v", asks, err)
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", &log)
	}
}

// The page shows a record's row and story, and personal data only on request.
func TestShown(t *testing.T) {
	t.Parallel()
	key := sha256.Sum256([]byte("the desk's"))
	keys, err := seal.NewStatic("desk", map[string][]byte{"desk": key[:]})
	if err != nil {
		t.Fatal(err)
	}
	const closed = "The record is sealed, and the page has no data key. Start samekey ui with --keys-from set to a program that has the keys."
	open := &Personal{Parts: []Part{{"Result of phase booked", "{\n  \"id\": 7\n}"}}}
	for name, tt := range map[string]struct {
		sealed seal.Provider
		said   []string
		pages  seal.Provider
		want   *Personal
	}{
		"plain":  {nil, nil, nil, open},
		"sealed": {keys, []string{closed}, nil, &Personal{Parts: []Part{{"Sealed", closed}}}},
		"opened": {keys, nil, keys, open},
	} {
		k := keep(t, stuckNow(), tt.sealed, tt.pages)
		for personal, want := range map[bool]*Personal{false: nil, true: tt.want} {
			s, err := k.Story(t.Context(), "v1#rides#a", personal)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(want, s.Personal); diff != "" || !slices.Equal(s.Said[1:], tt.said) {
				t.Errorf("%s, %t: said %q (-want +got):\n%s", name, personal, s.Said, diff)
			}
			row, ok, err := k.Row(t.Context(), "v1#rides#a")
			if diff := gocmp.Diff(s.Row, row); diff != "" || !ok || err != nil {
				t.Errorf("%s: %t, %v (-story +row):\n%s", name, ok, err, diff)
			}
		}
	}
	k := keep(t, stuckNow(), nil, nil)
	if _, err := k.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("orders"), Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "v1#rides#odd"}, "st": &types.AttributeValueMemberS{Value: "odd"},
	}}); err != nil {
		t.Fatal(err)
	}
	s, err := k.Story(t.Context(), "v1#rides#odd", true)
	if err != nil || len(s.Said) != 2 || !strings.HasPrefix(s.Said[0], "This program can't read the record: ") || s.Seen != "-" || len(s.Offers) > 0 || s.Personal != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if s != nil && (s.PK != "v1#rides#odd" || s.Name != shortName(s.PK) || !slices.Equal(s.Reasons, []string{"unreadable"}) || s.Error == "") {
		t.Errorf("%+v", s.Row)
	}
	if row, ok, err := k.Row(t.Context(), "v1#rides#odd"); !ok || err != nil || s != nil && !gocmp.Equal(row, s.Row) {
		t.Errorf("%+v, %t, %v", row, ok, err)
	}
	if s, err := k.Story(t.Context(), "v1#rides#none", true); !errors.Is(err, ErrGone) {
		t.Errorf("%+v, %v", s, err)
	}
	if row, ok, err := k.Row(t.Context(), "v1#rides#none"); ok || err != nil || row.PK != "" {
		t.Errorf("%+v, %v", row, err)
	}
}

// A search finds the record that it names, and no other.
func TestFinds(t *testing.T) {
	t.Parallel()
	pk, err := (records.Customer{Namespace: "rides", Key: "k", Scope: "jwt:jane"}).PK(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec := rides()["released"] // the record doesn't wait for people
	rec.PK = pk
	k := keep(t, rec, nil, nil)
	for _, s := range []Search{{Any: pk}, {Key: "k", Scope: "jwt:jane", Namespace: "rides"}, {Key: "k", Scan: true}, {Key: "k", Scan: true, Namespace: "rides"}} {
		if got, err := k.Find(t.Context(), s); err != nil || !slices.Equal(got.PKs, []string{pk}) {
			t.Errorf("%+v: %+v, %v", s, got, err)
		}
	}
	for _, s := range []Search{{Any: "v1#none"}, {Any: "v1#rides#none"}, {Any: pk + "#"}, {Key: "x", Scope: "jwt:jane", Namespace: "rides"}, {Key: "x", Scan: true}, {Key: "k", Scan: true, Namespace: "tips"}} {
		if got, err := k.Find(t.Context(), s); err != nil || len(got.PKs) > 0 {
			t.Errorf("%+v: %+v, %v", s, got, err)
		}
	}
	k.opt.Namespace = "rides"
	for _, s := range []Search{{Key: "k", Scope: "jwt:jane"}, {Key: "k", Scope: "jwt:jane", Namespace: "tips"}} {
		want := []string{pk}
		if s.Namespace != "" {
			want = nil
		}
		if got, err := k.Find(t.Context(), s); err != nil || !slices.Equal(got.PKs, want) {
			t.Errorf("page of namespace rides, %+v: got %+v, %v, want %q", s, got, err, want)
		}
	}
	other := rides()["released"]
	other.PK, other.Scope = "v1#shop#other", "tenant:acme|jwt:https://id.example|jane"
	k.add(t, other)
	if got, err := k.Find(t.Context(), Search{Caller: true, Scope: "jane", Scan: true}); err != nil || len(got.PKs) != 2 || got.Only != "" {
		t.Errorf("all of jane's: got %+v, %v, want both", got, err)
	}
	if got, err := k.Find(t.Context(), Search{Caller: true, Scope: "omar", Scan: true}); err != nil || got.Only != "No record matches; all records were compared." {
		t.Errorf("omar's: got %+v, %v", got, err)
	}
	k.fault = func(string) dbfault.Fault { return dbfault.LoseRequest }
	for _, any := range []string{"v1#none", "text", pk + "#"} { // not the key of a record: no request is sent
		if got, err := k.Find(t.Context(), Search{Any: any}); err != nil || len(got.PKs) > 0 {
			t.Errorf("%s: %+v, %v", any, got, err)
		}
	}
	if got, err := k.Find(t.Context(), Search{Key: "\x00"}); !errors.Is(err, ErrRefused) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Browse returns all rows of a table, Waiting those that wait for
// people, and Size what AWS counted.
func TestRowsOfATable(t *testing.T) {
	t.Parallel()
	row := func(name string, created int64, change func(*Row)) Row {
		r := Row{PK: "v1#rides#" + name, Name: shortName("v1#rides#" + name), Route: "POST /rides", Handler: "create", Phase: "booked", Tries: 2, Created: ms(created), Run: ms(created)}
		change(&r)
		return r
	}
	old := func(name string, created int64, change func(*store.Record)) *store.Record {
		r := rides()[name]
		r.PK, r.Created, r.Run, r.WaitSince, r.Expires = "v1#rides#"+strings.ReplaceAll(name, " ", ""), at(created), at(created), at(created), time.Time{}
		change(r)
		return r
	}
	same := func(*store.Record) {}
	k := keep(t, old("stuck", 10, same), nil, nil)
	k.add(t, old("call unknown", 20, same))
	k.add(t, old("released", 30, func(r *store.Record) { r.Blocked, r.LastErr = true, "out of order" }))
	k.add(t, old("jobs", 40, func(r *store.Record) { r.Jobs = map[string]store.Job{"0.1": {Failed: "no"}} }))
	want := []Row{
		row("stuck", 10, func(r *Row) { r.Reasons, r.State, r.Error = []string{"stuck"}, "stuck", "the bank is down" }),
		row("callunknown", 20, func(r *Row) {
			r.Reasons, r.State, r.Error, r.Phase = []string{"unknown"}, "stuck", "the bank is down", "charged"
		}),
		row("released", 30, func(r *Row) { r.Reasons, r.State, r.Error = []string{"blocked"}, "open", "out of order" }),
		row("jobs", 40, func(r *Row) { r.Reasons, r.Error, r.Phase, r.Tries = []string{"parked"}, "no", "", 0 }),
	}
	for _, most := range []int{4, 5, 2, 0} {
		got, err := k.Waiting(t.Context(), most)
		if diff := gocmp.Diff(want[:min(most, 4)], got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("%v, %d (-want +got):\n%s", err, most, diff)
		}
	}
	stored, err := k.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("orders"), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "v1#rides#stuck"}}})
	if err != nil {
		t.Fatal(err)
	}
	item, err := json.Marshal(itemjson.Item(stored.Item))
	if err != nil {
		t.Fatal(err)
	}
	says := func(op string) string { // the same for each of the four segments
		if op == "Scan" {
			return `{"Items":[` + string(item) + `],"Count":1,"ScannedCount":5,"ConsumedCapacity":{"CapacityUnits":2}}`
		}
		return `{"Table":{"ItemCount":10,"TableSizeBytes":81920}}`
	}
	k.fault = func(op string) dbfault.Fault {
		return func(_ http.RoundTripper, r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Request: r, Body: io.NopCloser(strings.NewReader(says(op)))}, nil
		}
	}
	var all []string
	var last Progress
	if err := k.Browse(t.Context(), func(rows []Row, p Progress) {
		for _, r := range rows {
			all = append(all, r.PK)
		}
		last = p
	}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(all, slices.Repeat([]string{"v1#rides#stuck"}, 4)) || last != (Progress{Scanned: 20, Units: 8}) {
		t.Errorf("%q, %+v", all, last)
	}
	if size, err := k.Size(t.Context()); err != nil || size != (Size{Items: 10, Bytes: 81_920}) || size.Units() != 10 {
		t.Errorf("%+v, %v", size, err)
	}
}

// Every call returns the error of a table that is missing or may not be read.
func TestTableThatFails(t *testing.T) {
	t.Parallel()
	for code, says := range map[string]string{"ResourceNotFoundException": "no table orders in this account and Region", "AccessDeniedException": "AccessDeniedException"} {
		k := keep(t, stuckNow(), nil, nil)
		k.fault = func(string) dbfault.Fault { return dbfault.AnswerError(400, code, "injected") }
		none := func([]Row, Progress) {}
		for name, do := range map[string]func(context.Context) error{
			"size":    func(ctx context.Context) error { _, err := k.Size(ctx); return err },
			"browse":  func(ctx context.Context) error { return k.Browse(ctx, none) },
			"row":     func(ctx context.Context) error { _, _, err := k.Row(ctx, "v1#rides#a"); return err },
			"story":   func(ctx context.Context) error { _, err := k.Story(ctx, "v1#rides#a", false); return err },
			"waiting": func(ctx context.Context) error { _, err := k.Waiting(ctx, 10); return err },
			"find":    func(ctx context.Context) error { _, err := k.Find(ctx, Search{Any: "v1#rides#a"}); return err },
			"key":     func(ctx context.Context) error { _, err := k.Find(ctx, Search{Key: "k"}); return err },
			"scan":    func(ctx context.Context) error { _, err := k.Find(ctx, Search{Key: "k", Scan: true}); return err },
		} {
			if err := do(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s says %v, want %s", name, err, says)
			}
		}
	}
	k := keep(t, stuckNow(), nil, nil)
	k.fault = func(string) dbfault.Fault {
		return dbfault.AnswerError(400, "ValidationException", "The table does not have the specified index: wait")
	}
	if rows, err := k.Waiting(t.Context(), 10); !errors.Is(err, ErrNoQuery) || rows != nil {
		t.Errorf("%v, %v", rows, err)
	}
	if err := k.Follow(t.Context(), nil, nil); !errors.Is(err, ErrNoStream) {
		t.Error(err)
	}
}

// A local table is read without a question, and fast. A scan of a table in AWS is slow.
func TestPlaceOfATable(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]struct {
		local bool
		pace  float64
	}{
		"": {false, 20}, "http://localhost:8000": {true, 1000}, "http://127.0.0.2:8000": {true, 1000}, "http://[::1]:1": {true, 1000},
		"https://dynamodb.example": {false, 20}, "http://10.0.0.1": {false, 20}, "http://%zz": {false, 20},
	} {
		opt := dynamodb.Options{Region: "eu-central-1", HTTPClient: awshttp.NewBuildableClient(), Logger: logging.NewStandardLogger(io.Discard)}
		if endpoint != "" {
			opt.BaseEndpoint = &endpoint
		}
		table, err := NewTable(dynamodb.New(opt), "orders", TableOptions{By: "jane"})
		if err != nil {
			t.Fatal(err)
		}
		about := About{Table: "orders", Region: "eu-central-1", Endpoint: endpoint, Local: want.local, By: "jane"}
		if table.About() != about || table.opt.PagesPerSecond != want.pace {
			t.Errorf("%+v, %v pages a second", table.About(), table.opt.PagesPerSecond)
		}
	}
	client := dynamodb.New(dynamodb.Options{})
	if table, err := NewTable(client, "", TableOptions{}); err == nil {
		t.Errorf("%+v has no name", table.About())
	}
}
