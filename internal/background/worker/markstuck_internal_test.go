package worker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// The sweep gives up the operations of every namespace, or only those of its own.
func TestGivesUpInItsNamespaces(t *testing.T) {
	t.Parallel()
	some := []string{"", "rides"}
	for _, tt := range []struct {
		namespace string
		of        []string
		ours      bool
	}{{"", nil, true}, {"rides", nil, true}, {"", some, true}, {"rides", some, true}, {"others", some, false}} {
		var db fakedynamo.DB
		st, err := dynamo.New(&db, "records")
		if err != nil {
			t.Fatal(err)
		}
		past := time.Now().Add(-48 * time.Hour)
		e := idem.New(st, idem.OneScope, func(o *idem.Options) {
			o.Namespace, o.MinKey, o.CallsOut, o.Now, o.Logger = tt.namespace, 1, true, func() time.Time { return past }, slog.New(slog.DiscardHandler)
		})
		_, err = e.Do(t.Context(), idem.Request{Key: "k", Method: "POST", Path: "/"}, func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (int, error) { return 0, errors.New("lost") })
			return idem.Response{}, err
		})
		if len(db.Items("records")) != 1 {
			t.Fatal(err)
		}
		rec, err := st.Load(t.Context(), db.Items("records")[0]["pk"].(*types.AttributeValueMemberS).Value)
		if err != nil {
			t.Fatal(err)
		}
		err = markStuck(st, &Options{Namespaces: tt.of})(t.Context(), state.TicketFor(rec), "nobody came")
		if errors.Is(err, jobs.ErrNotMine) == tt.ours || tt.ours && err != nil {
			t.Errorf("namespace %q, a worker of %q: %v, given up %t wanted", tt.namespace, tt.of, err, tt.ours)
		}
	}
}
