package ui_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/cmd/samekey/internal/ui"
	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/leaktest"
)

// jane is a customer's scope, and charged is the id of a charge.
const jane, charged = "jwt:" + leaktest.Mail, "ch_" + leaktest.Token

// desk holds a table, an application on the table, and the page's source.
type desk struct {
	*ui.Table
	engine *idem.Engine
	store  *dynamo.Store
	lost   bool // the provider's answers get lost
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	client := dynamotest.Start(t).Client(func(o *dynamodb.Options) { o.HTTPClient = http.DefaultClient })
	table := "ui-" + rand.Text()
	if _, err := client.CreateTable(t.Context(), dynamo.CreateTableInput(table)); err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(client).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	store, err := dynamo.New(client, table)
	if err != nil {
		t.Fatal(err)
	}
	src, err := ui.NewTable(client, table, ui.TableOptions{By: "jane"})
	if err != nil {
		t.Fatal(err)
	}
	return &desk{Table: src, store: store, lost: true, engine: idem.New(store, callertest.Anybody, func(o *idem.Options) {
		o.Namespace, o.Logger = "rides", slog.New(slog.DiscardHandler)
	})}
}

func (d *desk) pay(ctx context.Context, key string) (idem.Result, error) {
	return d.engine.Do(ctx, idem.Request{Key: key, Method: "POST", Route: "POST /rides", Identity: idem.Identity{Kind: "jwt", Subject: leaktest.Mail}}, func(ctx context.Context) (idem.Response, error) {
		charge, err := idem.Foreign(ctx, "charge_created", func(context.Context, *idem.Tx) (string, error) {
			if d.lost {
				return "", errors.New("lost")
			}
			return charged, nil
		}, idem.NotIdempotent())
		return idem.Response{Status: 201, Body: []byte(charge)}, err
	})
}

// stuck returns the story of a stuck operation, found by the customer's key.
func (d *desk) stuck(t *testing.T, key string) *ui.Story {
	t.Helper()
	if _, err := d.pay(t.Context(), key); err == nil {
		t.Fatal("answered")
	}
	return d.story(t, key)
}

func (d *desk) story(t *testing.T, key string) *ui.Story {
	t.Helper()
	found, err := d.Find(t.Context(), ui.Search{Key: key, Scope: jane, Namespace: "rides"})
	if err != nil || len(found.PKs) != 1 {
		t.Fatalf("found %+v, %v", found, err)
	}
	s, err := d.Story(t.Context(), found.PKs[0], false)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A decision shows its effect, needs an answer about the call in doubt, and works once.
func TestRetryOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.stuck(t, "k")
	a := ui.Action{Do: "retry", PK: s.PK, Seen: s.Seen, By: "jane"}
	for name, bad := range map[string]ui.Action{
		"nothing about the call": a,
		"a contradiction":        {Do: "retry", PK: s.PK, Seen: s.Seen, By: "jane", NotMade: true, RiskTwice: true},
		"nobody":                 {Do: "retry", PK: s.PK, Seen: s.Seen, NotMade: true},
		"no such action":         {Do: "delete", PK: s.PK, Seen: s.Seen, By: "jane"},
		"no status":              {Do: "settle", PK: s.PK, Seen: s.Seen, By: "jane"},
	} {
		if said, err := d.Act(t.Context(), bad); !errors.Is(err, ui.ErrRefused) {
			t.Errorf("%s: %q, %v", name, said, err)
		}
	}
	a.NotMade = true
	if ask, err := d.Ask(t.Context(), a); err != nil || !strings.HasPrefix(ask, `The call of phase "charge_created" had no effect. The call is made once more.`+"\nThe operation becomes open: only the client's next retry") {
		t.Errorf("asks %q, %v", ask, err)
	}
	other := a
	other.Seen = s.Seen + "x"
	_, asked := d.Ask(t.Context(), other)
	if _, acted := d.Act(t.Context(), other); !errors.Is(asked, ui.ErrMoved) || !errors.Is(acted, ui.ErrMoved) {
		t.Errorf("on a record that looks otherwise: %v and %v", asked, acted)
	}
	if now := d.story(t, "k"); now.Seen != s.Seen {
		t.Error("asking has written")
	}
	if _, err := d.Act(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if said, err := d.Act(t.Context(), a); !errors.Is(err, ui.ErrMoved) {
		t.Errorf("again: %q, %v", said, err)
	}
	d.lost = false
	if res, err := d.pay(t.Context(), "k"); err != nil || string(res.Body) != charged {
		t.Errorf("%s, %v", res.Body, err)
	}
}

// If two operators decide at once, one wins, and the other gets an error.
func TestTwoOperatorsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.stuck(t, "k")
	errs := make(chan error)
	for _, body := range []string{"a", "b"} {
		go func() {
			_, err := d.Act(t.Context(), ui.Action{Do: "settle", PK: s.PK, Seen: s.Seen, By: body, Status: 200, Body: body, ContentType: "text/plain"})
			errs <- err
		}()
	}
	first, second := <-errs, <-errs
	if (first == nil) == (second == nil) || !errors.Is(errors.Join(first, second), ui.ErrMoved) {
		t.Errorf("%v and %v", first, second)
	}
	if _, err := d.Act(t.Context(), ui.Action{Do: "retry", PK: "v1#rides#none", Seen: "x", By: "jane"}); !errors.Is(err, ui.ErrGone) {
		t.Errorf("no record: %v", err)
	}
}

// An answer that a person gives is kept as long as the function's own answers.
func TestSettledAnswerHoldsAsTheFunctionsOwn(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	after := time.Duration(0)
	d.engine = idem.New(d.store, callertest.Anybody, func(o *idem.Options) {
		o.Namespace, o.Logger, o.Retention = "rides", slog.New(slog.DiscardHandler), 720*time.Hour
		o.Now = func() time.Time { return time.Now().Add(after) }
	})
	s := d.stuck(t, "k")
	a := ui.Action{Do: "settle", PK: s.PK, Seen: s.Seen, By: "jane", Status: 200, Body: "ch_1", ContentType: "text/plain"}
	if ask, err := d.Ask(t.Context(), a); err != nil || !strings.Contains(ask, "The answer is replayed until ") {
		t.Errorf("asks %q, %v", ask, err)
	}
	if _, err := d.Act(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	d.lost, after = false, 25*time.Hour
	if res, err := d.pay(t.Context(), "k"); err != nil || !res.Replayed || string(res.Body) != "ch_1" {
		t.Errorf("%+v, %v", res, err)
	}
}
