// Package results has handlers for the rule results.
package results

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"time"
	"unsafe"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stripe/stripe-go/v85"

	"github.com/samekey/samekey/idem"
)

// want +8 `results: order.total doesn't survive the JSON in which the result of a phase is stored: the field is not exported. Return a struct whose exported fields hold what later phases need`

type order struct {
	ID    string
	total int
}

func bad(ctx context.Context, id string) (order, error) {
	return idem.Atomic(ctx, "order_created", func(context.Context, *idem.Tx) (order, error) {
		return order{ID: id, total: 20}, nil
	})
}

type Order struct {
	ID    string
	Total int
}

func good(ctx context.Context, id string) (Order, error) {
	return idem.Atomic(ctx, "order_created", func(context.Context, *idem.Tx) (Order, error) {
		return Order{ID: id, Total: 20}, nil
	})
}

// phase runs a phase with a result of type T.
func phase[T any](ctx context.Context) {
	idem.Atomic(ctx, "phase", func(context.Context, *idem.Tx) (v T, err error) { return v, nil })
}

func of[T any](context.Context, *idem.Tx) (v T, err error) { return v, nil }

type (
	left struct {
		Secret string `json:"-"`
	}
	nested struct{ Lines []map[string]*left }
	writes struct{ At int }
	stamp  struct {
		time.Time
		Zone string
	}
	shape interface{ Area() int }
	point struct{ X, Y int }
	text  struct{ point int }
)

func (writes) MarshalJSON() ([]byte, error) { return []byte("1"), nil }
func (t text) MarshalText() ([]byte, error) { return []byte("1"), nil }
func (t *text) UnmarshalText([]byte) error  { return nil }

func alsoBad(ctx context.Context) {
	idem.Atomic(ctx, "1", of[left])                      // want `results: left.Secret doesn't survive .*: its tag is .json:"-".`
	idem.Atomic(ctx, "2", of[nested])                    // want `results: nested.Lines\[…\]\[…\].Secret doesn't survive`
	idem.Atomic(ctx, "3", of[chan int])                  // want `results: chan int doesn't survive .*: JSON has no channels`
	idem.Atomic(ctx, "4", of[struct{ F func() }])        // want `results: struct{F func\(\)}.F doesn't survive .*: JSON has no functions`
	idem.Atomic(ctx, "5", of[map[point]int])             // want `results: .*JSON has no maps with keys of type results.point`
	idem.Atomic(ctx, "6", of[writes])                    // want `results: writes doesn't survive .*: it has MarshalJSON but no UnmarshalJSON`
	idem.Atomic(ctx, "7", of[stamp])                     // want `results: stamp doesn't survive .*: its MarshalJSON comes from an embedded field, and leaves the other fields out`
	idem.Atomic(ctx, "8", of[[]shape])                   // want `results: \[\]shape\[…\] doesn't survive .*: JSON can't be decoded into the interface results.shape`
	idem.Atomic(ctx, "9", of[complex128])                // want `results: complex128 doesn't survive .*: JSON has no complex128`
	idem.Foreign(ctx, "10", of[*dynamodb.GetItemOutput]) // want `results: \*dynamodb.GetItemOutput doesn't|results: dynamodb.GetItemOutput`
	idem.Foreign(ctx, "11", of[*stripe.Charge])          // want `results: stripe.Charge.APIResource.LastResponse|results: .*stripe.Charge`
	idem.NewJob("mail", order{})                         // want `results: order.total doesn't survive the JSON in which a job is stored: the field is not exported. Give the job a struct of exported fields`
	idem.NewJob("mail", make(chan int))                  // want `results: chan int doesn't`
}

type (
	marker struct{}
	inner  struct{ Name string }
	fine   struct {
		inner
		marker marker
		_      int
		At     time.Time
		Amount *big.Int
		Raw    json.RawMessage
		Data   []byte
		Any    any
		Next   *fine
		Byte   [2]byte
		By     map[int]string
		Text   map[text]bool
	}
)

func alsoGood(ctx context.Context) error {
	phase[fine](ctx)
	idem.Atomic(ctx, "1", of[*fine])
	idem.Atomic(ctx, "2", of[any])
	idem.Atomic(ctx, "3", of[struct{}])
	idem.Atomic(ctx, "4", of[json.Number])
	idem.NewJob("mail", fine{})
	idem.NewJob("mail", writes{})
	idem.NewJob("mail", map[string]any{"to": "work"})
	_, err := idem.Finish(ctx, func(context.Context, *idem.Tx) (order, error) { return order{}, errors.New("an adapter's") })
	return err
}

// must is a wrapper that returns no error.
func must[T any](ctx context.Context, fn func(context.Context, *idem.Tx) (T, error)) T {
	v, _ := idem.Atomic(ctx, "must", fn)
	return v
}

func byMust(ctx context.Context) {
	must(ctx, of[left]) // want `results: left.Secret doesn't survive`
}

type (
	list         = []left
	halfKey      struct{ ID int }
	otherKey     struct{ ID int }
	notAMarker   struct{ inside struct{ N int } }
	notAMarshal  struct{ MarshalJSON, n int }
	otherMarshal struct{ n int }
	stampText    struct {
		text
		Zone string
	}
	onlyStamp      struct{ time.Time }
	number         int
	hides          struct{ number }
	generic[T any] struct {
		Value T
		at    T
	}
)

func (halfKey) MarshalText() ([]byte, error)    { return nil, nil }
func (*otherKey) UnmarshalText([]byte) error    { return nil }
func (otherMarshal) MarshalJSON(a, b int)       {}
func (generic[T]) MarshalJSON() ([]byte, error) { return nil, nil }
func (*generic[T]) UnmarshalJSON([]byte) error  { return nil }

func inGeneric[K comparable](ctx context.Context) {
	idem.Atomic(ctx, "1", of[map[K]int])
	idem.Atomic(ctx, "2", of[K])
}

func evenWorse(ctx context.Context) {
	idem.Atomic(ctx, "1", of[list])             // want `results: .*Secret doesn't survive`
	idem.Atomic(ctx, "2", of[unsafe.Pointer])   // want `results: .*JSON has no Pointer`
	idem.Atomic(ctx, "3", of[map[halfKey]int])  // want `results: .*JSON has no maps with keys of type results.halfKey`
	idem.Atomic(ctx, "4", of[map[otherKey]int]) // want `results: .*JSON has no maps with keys of type results.otherKey`
	idem.Atomic(ctx, "5", of[map[float64]int])  // want `results: .*JSON has no maps with keys of type float64`
	idem.Atomic(ctx, "6", of[map[bool]int])     // want `results: .*JSON has no maps with keys of type bool`
	idem.Atomic(ctx, "7", of[notAMarker])       // want `results: notAMarker.inside doesn't survive .*: the field is not exported`
	idem.Atomic(ctx, "8", of[notAMarshal])      // want `results: notAMarshal.n doesn't survive .*: the field is not exported`
	idem.Atomic(ctx, "9", of[otherMarshal])     // want `results: otherMarshal.n doesn't survive .*: the field is not exported`
	idem.Atomic(ctx, "10", of[*stamp])          // want `results: \*stamp doesn't survive .*: its MarshalJSON comes from an embedded field`
	idem.Atomic(ctx, "11", of[stampText])       // want `results: stampText doesn't survive .*: its MarshalText comes from an embedded field`
	idem.Atomic(ctx, "12", of[hides])           // want `results: hides.number doesn't survive .*: the field is not exported`
	idem.Atomic(ctx, "13", of[json.Marshaler])  // want `results: .*: JSON can't be decoded into the interface json.Marshaler`
	idem.Atomic(ctx, "14", of[struct {          // want `results: .*: its MarshalJSON comes from an embedded field`
		time.Time
		Zone string
	}])
	idem.NewJob("mail", left{}) // want `results: left.Secret doesn't survive`
}

func evenBetter(ctx context.Context) {
	idem.Atomic(ctx, "1", of[onlyStamp])
	idem.Atomic(ctx, "2", of[generic[int]])
	idem.Atomic(ctx, "3", of[map[string]uint])
	idem.NewJob("mail", stamp{})
	idem.NewJob("mail", []shape{})
	idem.NewJob(job())
	nothing(ctx)
}

func job() (string, any) { return "mail", nil }

// nothing's phase is reported where it stands.
func nothing(ctx context.Context) { told(ctx, func() {}) }

func told(ctx context.Context, fn func()) {
	idem.Atomic(ctx, "told", func(context.Context, *idem.Tx) (left, error) { fn(); return left{}, nil }) // want `results: left.Secret doesn't survive`
}
