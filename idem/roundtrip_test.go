package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

type money struct {
	amount   int64
	Currency string
}

// ownMoney has its own JSON methods.
type ownMoney struct{ amount int64 }

func (m ownMoney) MarshalJSON() ([]byte, error)  { return json.Marshal(m.amount) }
func (m *ownMoney) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &m.amount) }

// halfMoney has JSON methods only on its pointer, which encoding/json can't call
// for a value.
type halfMoney struct{ amount int64 }

func (m *halfMoney) MarshalJSON() ([]byte, error) { return json.Marshal(m.amount) }
func (m *halfMoney) UnmarshalJSON(b []byte) error { return nil }

type head struct{ ID string }

type twins struct {
	head
	tail
}

type tail struct{ ID string }

// A result that storing would change could be charged, shipped or refunded in its
// changed form: it is refused before anything commits.
func TestResultThatLosesDataIsRefused(t *testing.T) {
	t.Parallel()
	refused(t, "unexported, at the top", money{amount: 20}, "amount")
	refused(t, "unexported, nested", struct{ Price money }{money{20, "usd"}}, "Price.amount")
	refused(t, "unexported, behind a pointer", struct{ Price *money }{&money{20, "usd"}}, "Price.amount")
	refused(t, "unexported, in a list", []money{{0, "usd"}, {20, "usd"}}, "[…].amount")
	refused(t, "unexported, in a map", map[string]money{"total": {20, "usd"}}, "[…].amount")
	refused(t, "unexported, in a map with other keys", map[int]money{1: {20, "usd"}}, "[…].amount")
	refused(t, "unexported, in an interface", map[string]any{"total": money{20, "usd"}}, "[…].amount")
	refused(t, "unexported, deep in an interface", map[string]any{"total": []any{map[int]any{1: &money{20, "usd"}}}}, "amount")
	refused(t, "unexported, in an array", [1]money{{20, "usd"}}, "amount")
	refused(t, "left out by its tag", struct {
		Price struct {
			Amount int `json:"-"`
		}
	}{struct {
		Amount int `json:"-"`
	}{20}}, "Price.Amount")
	refused(t, "two embedded fields of one name", twins{head{"a"}, tail{"b"}}, "ID")
	refused(t, "a marshaler that a value doesn't have", struct{ Price halfMoney }{halfMoney{20}}, "amount")
	refused(t, "a string that isn't UTF-8", struct{ Name string }{"caf\xe9"}, "Name")
	refused(t, "a map's key that isn't UTF-8", map[string]int{"caf\xe9": 1}, "")
}

func TestResultThatKeepsItsDataIsTaken(t *testing.T) {
	t.Parallel()
	taken(t, "hidden fields that hold nothing", struct{ Price money }{money{0, "usd"}})
	taken(t, "a type with its own JSON", struct{ Price, Tip ownMoney }{ownMoney{20}, ownMoney{}})
	taken(t, "a time", struct{ At time.Time }{time.Now()})
	taken(t, "raw JSON", json.RawMessage(`{ "a": 1 }`))
	taken(t, "empty and nil", struct {
		A []int          `json:",omitempty"`
		B map[string]int `json:",omitempty"`
		C *int
	}{A: []int{}, B: map[string]int{}})
	taken(t, "numbers in an interface", map[string]any{"n": 1, "s": []any{"x", nil, true}})
	taken(t, "an embedded struct", struct{ head }{head{"a"}})
	taken(t, "keys of other types", map[time.Duration]string{time.Second: "a"})
	taken(t, "keys with their own text", map[netip.Addr]string{netip.MustParseAddr("::1"): "a"})
	taken[any](t, "nothing", nil)
	taken[*money](t, "a nil pointer", nil)
	taken(t, "bytes", []byte{0, 255})
}

func commitResult[T any](t *testing.T, v T) (commits int, err error) {
	t.Helper()
	var store idem.MemoryStore
	engine := idem.New(&store, callertest.Anybody)
	_, err = engine.Do(t.Context(), idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Key: "k", Method: "POST", Path: "/"}, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Atomic(ctx, "charge", func(context.Context, *idem.Tx) (T, error) { return v, nil })
		return idem.Response{Status: 201}, err
	})
	for _, r := range store.Records() {
		commits += len(r.Phases)
	}
	return commits, err
}

func refused[T any](t *testing.T, name string, v T, at string) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		commits, err := commitResult(t, v)
		if !errors.Is(err, idem.ErrResult) || commits != 0 || !strings.Contains(err.Error(), at) {
			t.Errorf("%d commits, %v; want ErrResult that names %q", commits, err, at)
		}
	})
}

func taken[T any](t *testing.T, name string, v T) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		if commits, err := commitResult(t, v); err != nil || commits != 1 {
			t.Errorf("%d commits, %v", commits, err)
		}
	})
}
