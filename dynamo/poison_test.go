package dynamo_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
)

type attributes = map[string]types.AttributeValue

func answerOf(it attributes) attributes { return it["resp"].(*types.AttributeValueMemberM).Value }

// A record that somebody has edited by hand is answered with 500: nothing runs a second
// time, nothing of the record is shown, and it stays as it is for an operator.
func TestBadInput24EditedRecordRunsNothing(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(attributes){
		"another layout version": func(it attributes) { it["v"] = tabletest.Num(2) },
		"no owner":               func(it attributes) { delete(it, "owner") },
		"an unknown state":       func(it attributes) { it["st"] = tabletest.Str("paused") },
		"no answer":              func(it attributes) { delete(it, "resp") },
		"a body of text":         func(it attributes) { answerOf(it)["b"] = tabletest.Str("SECRET") },
		"a lease of text":        func(it attributes) { it["lease_ms"] = tabletest.Str("0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := newTable(t)
			runs := 0
			serve := func() idem.Result {
				r := tabletest.Post("", "1")
				r.Header = http.Header{"Idempotency-Key": {"k"}}
				res, err := tab.Engine().Serve(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
					runs++
					return tabletest.Created("SECRET")(ctx)
				})
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			serve()
			it := tab.Items(t)[0]
			edit(it)
			tab.Put(t, it)
			for range 2 {
				res := serve()
				body := string(res.Body)
				if res.Status != http.StatusInternalServerError || !strings.Contains(body, "record_corrupt") || strings.Contains(body, "SECRET") || runs != 1 {
					t.Errorf("%d %s after %d runs, want 500 record_corrupt after 1", res.Status, body, runs)
				}
			}
			if diff := cmp.Diff(it, tab.Items(t)[0], cmp.Comparer(sameAttribute)); diff != "" {
				t.Errorf("the record was changed:\n%s", diff)
			}
		})
	}
}

func sameAttribute(a, b types.AttributeValue) bool { return cmp.Equal(plain(a), plain(b)) }

// plain is an attribute without the types of the SDK, which cmp can't compare.
func plain(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return "number " + v.Value
	case *types.AttributeValueMemberB:
		return v.Value
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberL:
		var all []any
		for _, e := range v.Value {
			all = append(all, plain(e))
		}
		return all
	case *types.AttributeValueMemberM:
		all := make(map[string]any)
		for name, e := range v.Value {
			all[name] = plain(e)
		}
		return all
	}
	return v
}

// Headers that somebody has put into a record neither split the answer nor set a cookie.
func TestForgedHeadersAreNotReplayed(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	do := func() idem.Result {
		res, err := tab.Engine().Do(t.Context(), tabletest.Post("k", "1"), tabletest.Created("made"))
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	do()
	it := tab.Items(t)[0]
	answerOf(it)["h"] = &types.AttributeValueMemberM{Value: attributes{
		"Content-Type": tabletest.Str("application/json"), "Set-Cookie": tabletest.Str("session=forged"), "set-cookie": tabletest.Str("session=forged"),
		"Location": tabletest.Str("/\r\nSet-Cookie: session=forged"), "X-Amz-Meta": tabletest.Str("x"), "Www-Authenticate": tabletest.Str("Basic"),
	}}
	tab.Put(t, it)
	res := do()
	if diff := cmp.Diff(http.Header{"Content-Type": {"application/json"}}, res.Header); diff != "" || !res.Replayed {
		t.Errorf("replayed %v, headers (-want +got):\n%s", res.Replayed, diff)
	}
}
