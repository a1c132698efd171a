package dynamo

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
)

// TestTableNames compares the form of names with its regular expression.
func TestTableNames(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^([a-zA-Z0-9_.-]{3,255}|arn:[a-zA-Z0-9:/_.-]+)$`)
	names := []string{
		"", "ab", "abc", "a.b-c_D9", "samekey:", "sämekey", "same key", "same/key", "arn", "arn:", "arn:x", "arn:\n", "arnold", "arnold:x",
		"arn:aws:dynamodb:eu-central-1:123456789012:table/samekey", "arn:aws:dynamodb:eu-central-1:123456789012:table/same key",
		strings.Repeat("n", 255), strings.Repeat("n", 256), "arn:" + strings.Repeat("n", 300),
	}
	for c := range rune(256) {
		names = append(names, "ab"+string(c), "arn:ab"+string(c), string(c)+"arn:ab")
	}
	for _, name := range names {
		if got, want := tableName(name), form.MatchString(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

// While a key has two places, the record beside it may be another caller's request. It
// says nothing while another write on the key's own place hides that place's record: its
// reader would be told to take a new key.
func TestConflictIsToldBeforeTheRecordBeside(t *testing.T) {
	t.Parallel()
	conflict := types.CancellationReason{Code: aws.String("TransactionConflict")}
	refusal := func(pk string) types.CancellationReason {
		var v item.Values
		return types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Item: v.Encode(&store.Record{PK: pk, Owner: "o", Ver: 1, ID: "i", State: store.Open, Keep: store.KeepOpen}, nil)}
	}
	for name, tt := range map[string]struct {
		reasons []types.CancellationReason
		held    string
		want    error
	}{
		"a conflict, and a record beside": {[]types.CancellationReason{conflict, refusal("beside")}, "", store.ErrConflict},
		"a record, and a conflict beside": {[]types.CancellationReason{refusal("own"), conflict}, "own", nil},
		"two records":                     {[]types.CancellationReason{refusal("own"), refusal("beside")}, "own", nil},
		"a record beside":                 {[]types.CancellationReason{{Code: aws.String("None")}, refusal("beside")}, "beside", nil},
	} {
		held, err := why(tt.reasons, len(tt.reasons), nil, errors.New("cancelled"))
		if !errors.Is(err, tt.want) || (held == nil) != (tt.held == "") || held != nil && held.PK != tt.held {
			t.Errorf("%s: %+v, %v", name, held, err)
		}
	}
}
