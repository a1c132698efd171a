package dynamo_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/itemjson"
)

var writeFormat = flag.Bool("write-format", false, "write the missing files of testdata/format")

// formatChange says what a change of the format needs.
const formatChange = `the items of layout 1 are written otherwise than before. Every table has such items, and programs of two releases write them side by side.
Don't change these files: undo the change, or give the layout a new number, which a release reads before the next one writes it (docs/operate/item.md#layout-versions).`

// deflatedAnswer has a body whose stored bytes are those of the Go version: its text is compared.
const deflatedAnswer = "done with a deflated answer"

// formatStates are the writes that bring a record into each state. The clock and all
// names stand still.
func formatStates() map[string]func(r *store.Record) []*store.Record {
	at := func(s int) time.Time { return time.UnixMilli(1_800_000_000_123).Add(time.Duration(s) * time.Second) }
	phase := func(r *store.Record) *store.Record {
		return state.Advanced(r, at(1), []store.Phase{{Name: "reserve", Result: []byte(`{"seat":7}`), At: time.Second}},
			map[string]store.Job{"0.0": {Kind: "mail", Args: []byte(`{"to":"zoë"}`), Group: "zoë"}}, []string{"payments#1"})
	}
	answer := func(body string) store.Response {
		return store.Response{Status: 201, Header: http.Header{"Content-Type": {"text/plain"}, "Via": {"1", "2"}}, Body: []byte(body)}
	}
	return map[string]func(*store.Record) []*store.Record{
		"open, remembered for longer": func(r *store.Record) []*store.Record {
			r.Retention = 720 * time.Hour
			return []*store.Record{r}
		},
		"open": func(r *store.Record) []*store.Record { return []*store.Record{r, phase(r)} },
		"stuck": func(r *store.Record) []*store.Record {
			one := phase(r)
			return []*store.Record{r, one, state.MadeStuck(one, at(2), "the outcome is unknown")}
		},
		"released": func(r *store.Record) []*store.Record {
			one := phase(r)
			return []*store.Record{r, one, state.Released(one, at(2), state.Release{Why: "down", Calls: []string{"payments#2"}, Sent: map[string]string{"payments#2": "0f"}})}
		},
		"freed": func(r *store.Record) []*store.Record {
			r.Input = nil
			return []*store.Record{r, state.Released(r, at(2), state.Release{Why: "refused", Refused: true})}
		},
		"done": func(r *store.Record) []*store.Record {
			r.Retention = time.Hour
			return []*store.Record{r, state.Finished(r, answer("x"), at(2))}
		},
		deflatedAnswer: func(r *store.Record) []*store.Record {
			r.Retention = time.Hour
			return []*store.Record{r, state.Finished(r, answer(strings.Repeat("all work and no play ", 100)), at(2))}
		},
		"done with jobs": func(r *store.Record) []*store.Record {
			r.Retention = time.Hour
			one := phase(r)
			return []*store.Record{r, one, state.Finished(one, answer("x"), at(2))}
		},
		"in companions": func(r *store.Record) []*store.Record {
			r.Retention, r.Input.Body = time.Hour, []byte(incompressible(700))
			return []*store.Record{r, state.Finished(r, answer(incompressible(600)), at(2))}
		},
	}
}

// formatRecord is a claimed record with all that a claim may have.
func formatRecord() *store.Record {
	at := time.UnixMilli(1_800_000_000_123)
	return &store.Record{
		PK: "v1#shop#" + strings.Repeat("k", 43), State: store.Open, Owner: "OWNER", Ver: 1, ID: "ID", Lease: at.Add(time.Minute), Keep: store.KeepOpen,
		Fingerprint: strings.Repeat("0f", 32), Secret: "2026", Scheme: "-query", Created: at, Run: at, Route: "POST /orders", Region: "eu-central-1",
		Scope: "op|jwt:zoë", Handler: store.HandlerID{Function: "rides", Name: "post"}, Tenant: "blue",
		Input: &store.Input{Method: "POST", Path: "/orders", Query: "a=1", Header: http.Header{"Accept": {"*/*"}}, Identity: store.Identity{Kind: "jwt", Subject: "zoë"}, Body: []byte("{}")},
	}
}

// The items that each state has are written as they always were, and nothing else is.
// Sealed parts have a random nonce, so their lengths are compared; package item compares
// their contents.
func TestFormat(t *testing.T) {
	t.Parallel()
	for name, writes := range formatStates() {
		for suffix, opts := range map[string][]func(*dynamo.Options){"": nil, ", sealed": {sealing(newProvider(t, "old", "old"))}} {
			if name == deflatedAnswer && suffix != "" {
				continue
			}
			t.Run(name+suffix, func(t *testing.T) {
				t.Parallel()
				db := &fakedynamo.DB{}
				s, err := dynamo.New(db, goldenTable, append(opts, func(o *dynamo.Options) { o.Inline = 500 })...)
				if err != nil {
					t.Fatal(err)
				}
				all := writes(formatRecord())
				for i, next := range all {
					var held *store.Record
					if i == 0 {
						held, err = s.Claim(t.Context(), store.Claim{Next: next, Now: next.Created})
					} else {
						next.Seal = all[i-1].Seal
						held, err = s.Commit(t.Context(), store.Commit{Prev: all[i-1], Next: next})
					}
					if held != nil || err != nil {
						t.Fatalf("write %d: %+v, %v", i, held, err)
					}
				}
				var got []itemjson.Item
				for _, it := range db.Items(goldenTable) {
					if it["st"] == nil {
						delete(it, "exp_s") // of companions: by the clock
					}
					got = append(got, it)
				}
				want := formatFile(t, name+suffix, got)
				if diff := cmp.Diff(compared(t, want), compared(t, got)); diff != "" {
					t.Errorf("%s\nitems (-as ever +now):\n%s", formatChange, diff)
				}
			})
		}
	}
}

// formatFile returns the items of a state as they are in its file, which it writes first
// if -write-format says so and there is none.
func formatFile(t *testing.T, name string, got []itemjson.Item) (want []itemjson.Item) {
	t.Helper()
	file := filepath.Join("testdata", "format", strings.NewReplacer(", ", "-", " ", "-").Replace(name)+".json")
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && *writeFormat {
		if raw, err = json.MarshalIndent(got, "", " "); err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, append(raw, '\n'), 0o600))
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	return want
}

// compared are items in the order of their keys, with the lengths of sealed parts: of
// binaries in a record with a data key, except for its fingerprint.
func compared(t *testing.T, items []itemjson.Item) string {
	t.Helper()
	sealed := slices.ContainsFunc(items, func(it itemjson.Item) bool { return it["seal"] != nil })
	out := make([]itemjson.Item, 0, len(items))
	for _, it := range items {
		shown := make(itemjson.Item, len(it))
		for name, v := range it {
			switch shown[name] = v; {
			case sealed && name != "fp":
				shown[name] = lengths(v)
			case name == "resp":
				shown[name] = inflated(t, v.(*types.AttributeValueMemberM).Value)
			}
		}
		out = append(out, shown)
	}
	slices.SortFunc(out, func(a, b itemjson.Item) int {
		return strings.Compare(a["pk"].(*types.AttributeValueMemberS).Value, b["pk"].(*types.AttributeValueMemberS).Value)
	})
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// inflated is an answer with the text of its body.
func inflated(t *testing.T, resp item.Map) types.AttributeValue {
	t.Helper()
	if resp["z"] == nil {
		return &types.AttributeValueMemberM{Value: resp}
	}
	body, err := item.Inflate(resp["b"].(*types.AttributeValueMemberB).Value, item.MaxStored)
	if err != nil {
		t.Fatal(err)
	}
	shown := maps.Clone(resp)
	shown["b"] = &types.AttributeValueMemberS{Value: string(body)}
	return &types.AttributeValueMemberM{Value: shown}
}

func lengths(v types.AttributeValue) types.AttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberB:
		return &types.AttributeValueMemberB{Value: make([]byte, len(v.Value))}
	case *types.AttributeValueMemberM:
		m := make(map[string]types.AttributeValue, len(v.Value))
		for name, e := range v.Value {
			m[name] = lengths(e)
		}
		return &types.AttributeValueMemberM{Value: m}
	case *types.AttributeValueMemberL:
		list := make([]types.AttributeValue, len(v.Value))
		for i, e := range v.Value {
			list[i] = lengths(e)
		}
		return &types.AttributeValueMemberL{Value: list}
	default:
		return v
	}
}
