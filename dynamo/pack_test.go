package dynamo_test

import (
	"bytes"
	"compress/flate"
	"context"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// TestBodiesAreCompressedWhereThatSavesAUnit compares the stored form of answers and
// of stored requests with the other form, by the units that writing the item costs.
func TestBodiesAreCompressedWhereThatSavesAUnit(t *testing.T) {
	t.Parallel()
	both := map[bool]int{}
	for n := 50; n <= 4000; n += 37 { // larger ones lie outside of the record
		half := randomText(n / 2)
		body := half + strings.Repeat("x", n-len(half)) // as compressible as JSON
		for _, attr := range []string{"resp", "req"} {
			item := storedWith(t, attr, body)
			in := item[attr].(*types.AttributeValueMemberM).Value
			_, zipped := in["z"]
			both[zipped]++

			other := maps.Clone(item)
			otherIn := maps.Clone(in)
			other[attr] = &types.AttributeValueMemberM{Value: otherIn}
			if zipped {
				delete(otherIn, "z")
				otherIn["b"] = &types.AttributeValueMemberB{Value: []byte(body)}
			} else {
				otherIn["z"] = &types.AttributeValueMemberBOOL{Value: true}
				otherIn["b"] = &types.AttributeValueMemberB{Value: deflated(t, body)}
			}
			got, alternative := writeUnits(item), writeUnits(other)
			switch {
			case zipped && got >= alternative:
				t.Errorf("%s of %d bytes is compressed: %d units, plain %d", attr, n, got, alternative)
			case !zipped && alternative < got && n >= 400:
				t.Errorf("%s of %d bytes is plain: %d units, compressed %d", attr, n, got, alternative)
			}
		}
	}
	if both[true] < 20 || both[false] < 20 {
		t.Errorf("compressed and plain: %v: the test shows too little", both)
	}
}

// storedWith returns the item at the time that costs most: as claimed with body in its
// request, or as finished with body in its answer.
func storedWith(t *testing.T, attr, body string) map[string]types.AttributeValue {
	t.Helper()
	var seen recordingAPI
	store, err := dynamo.New(&seen, "pack")
	if err != nil {
		t.Fatal(err)
	}
	request, answer := "{}", body
	if attr == "req" {
		request, answer = body, "{}"
	}
	engine := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Function, o.Resumable = "f", attr == "req" })
	_, err = engine.Do(t.Context(), tabletest.Post("key", request), func(context.Context) (idem.Response, error) {
		return idem.Response{Status: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(answer)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if attr == "req" {
		return seen.put.Item
	}
	return seen.finished(t)
}

func deflated(t *testing.T, body string) []byte {
	t.Helper()
	var buf bytes.Buffer
	z, err := flate.NewWriter(&buf, 7)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
