package stream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
)

// pages is a table of one segment, which counts half a unit for each page if it is asked to.
type pages struct {
	n      int
	silent bool     // about its units
	from   []string // with which the pages begin
}

func (p *pages) Scan(_ context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	p.from = append(p.from, item.PK(in.ExclusiveStartKey))
	out := &dynamodb.ScanOutput{ScannedCount: 3}
	if in.ReturnConsumedCapacity == types.ReturnConsumedCapacityTotal && !p.silent {
		out.ConsumedCapacity = &types.ConsumedCapacity{CapacityUnits: aws.Float64(0.5)}
	}
	if len(p.from) < p.n {
		out.LastEvaluatedKey = item.Key(strings.Repeat("k", len(p.from)))
	}
	return out, nil
}

// Browse goes on where a page ends, and tells how far it is. It begins no page once its context
// is over.
func TestBrowseGoesOn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end   int // the page that ends the context
		units float64
		from  []string
		want  error
	}{
		"to the end":               {0, 1.5, []string{"", "k", "kk"}, nil},
		"until it is stopped":      {2, 1, []string{"", "k"}, context.Canceled},
		"where no units are known": {0, 0, []string{"", "k", "kk"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				api := &pages{n: 3, silent: tt.units == 0}
				s := &Sweep{api: api, opt: SweepOptions{Segments: 1, PagesPerSecond: 2}}
				began, last := time.Now(), Browsed{}
				err := s.Browse(ctx, func(_ []Glimpse, b Browsed) {
					if last = b; b.Pages == tt.end {
						cancel()
					}
				})
				n := len(tt.from)
				if !errors.Is(err, tt.want) || !slices.Equal(api.from, tt.from) || last != (Browsed{n, 3 * n, tt.units}) {
					t.Errorf("pages from %q, %+v: %v", api.from, last, err)
				}
				if took := time.Since(began); took != time.Duration(n)*time.Second/2 {
					t.Errorf("%d pages in %v", n, took)
				}
			})
		})
	}
}

// What is shown of a record has nothing that may be personal.
func TestGlimpseIsBare(t *testing.T) {
	t.Parallel()
	const secret = "personal"
	s := &Sweep{opt: SweepOptions{Now: time.Now}}
	r := &store.Record{
		PK: "v1##a", State: store.Stuck, Seal: sealed{},
		Phases: []store.Phase{{Name: "charged", Result: []byte(`"` + secret + `"`)}}, Jobs: map[string]store.Job{"0.0": {Kind: "mail", Args: []byte(`"` + secret + `"`)}},
		Input:    &store.Input{Method: "POST", Route: "POST /a", Path: "/" + secret, Query: secret, Body: []byte(secret)},
		Response: &store.Response{Status: 201, Body: []byte(secret)},
	}
	g := s.Glimpse(r)
	text, err := json.Marshal(g)
	if err != nil || strings.Contains(string(text), secret) || g.Record.Phases[0].Result != nil || g.Record.Jobs["0.0"].Args != nil || g.Record.Input.Body != nil || g.Record.Response.Body != nil || g.Record.Seal != nil {
		t.Errorf("shown: %s, %v", text, err)
	}
	if b := g.Record; b.Phases[0].Name != "charged" || b.Jobs["0.0"].Kind != "mail" || b.Input.Route != "POST /a" || b.Input.Method != "POST" || b.Response.Status != 201 || len(g.Entries) != 2 {
		t.Errorf("too little is shown: %s", text)
	}
	if string(r.Phases[0].Result) == "" || r.Seal == nil || len(r.Jobs["0.0"].Args) == 0 || len(r.Input.Body) == 0 {
		t.Error("the record was changed")
	}
}

type sealed struct{ store.Seal }
