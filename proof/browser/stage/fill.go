package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	layout "github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

const (
	stuckKey = "order-2041" // the provider's answer to it was lost
	many     = 10_000
)

type item = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// requests fills a table as a busy day does: finished rides, some with a job under way,
// one that is stuck, one with a parked job, one of a layout that nobody knows.
func (st *stage) requests(ctx context.Context) error {
	a, err := st.app(ctx, "requests")
	if err != nil {
		return err
	}
	if _, err := a.ride(ctx, "order-1"); err != nil {
		return err
	}
	samples, err := st.items(ctx, a.table)
	if err != nil || len(samples) != 1 {
		return fmt.Errorf("%d samples, %w", len(samples), err)
	}
	routes := []string{"POST /rides", "POST /rides", "POST /rides", "POST /refunds", "POST /tips"}
	now := time.Now()
	copies := make([]item, 0, many)
	for i := range many - 3 {
		at := now.Add(-6 * time.Hour * time.Duration(i) / many * time.Duration(i) / many)
		c := copyOf(samples[0], i, at)
		c["route"] = str(routes[i*7%len(routes)])
		if i > 3 { // its job was delivered
			c["jobs"] = &types.AttributeValueMemberM{Value: item{}}
			c["exp_s"] = num(at.Add(24 * time.Hour).Unix())
			delete(c, "keep")
			delete(c, "until_s")
		}
		if i == 5_000 {
			c["v"] = num(9)
		}
		copies = append(copies, c)
	}
	if err := st.write(ctx, a.table, copies); err != nil {
		return err
	}
	if _, err := a.ride(ctx, "order-parked"); err != nil {
		return err
	}
	if err := st.park(ctx, a, "422 Unprocessable Entity: no such mailbox"); err != nil {
		return err
	}
	a.lost.Store(true)
	if _, err := a.ride(ctx, stuckKey); err == nil {
		return fmt.Errorf("%s was answered", stuckKey)
	}
	return nil
}

// several fills a table with what may be decided at once, and what may not: two rides with
// parked jobs, two that are stuck without a doubt, one whose charge is unknown, and one whose
// attempt is gone.
func (st *stage) several(ctx context.Context) error {
	a, err := st.app(ctx, "several")
	if err != nil {
		return err
	}
	for _, key := range []string{"parked-1", "parked-2"} {
		if _, err := a.ride(ctx, key); err != nil {
			return err
		}
		if err := st.park(ctx, a, "422 Unprocessable Entity: no such mailbox"); err != nil {
			return err
		}
	}
	for _, key := range []string{"stuck-1", "stuck-2"} {
		if err := st.stick(ctx, a, key); err != nil {
			return err
		}
	}
	a.lost.Store(true)
	if _, err := a.ride(ctx, "unknown-1"); err == nil {
		return errors.New("unknown-1 was answered")
	}
	return a.hold(ctx, "held-1")
}

// hold leaves an attempt at work. It ends with the program, on a machine of any speed.
func (a *app) hold(ctx context.Context, key string) error {
	begun := make(chan struct{})
	go func() {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		_, _ = a.engine.Do(ctx, idem.Request{Key: key, Method: "POST", Route: "POST /slow", Path: "/slow", Identity: jane}, func(ctx context.Context) (idem.Response, error) {
			close(begun)
			<-ctx.Done()
			return idem.Response{}, ctx.Err()
		})
	}()
	<-begun
	return nil
}

// stick leaves an operation after its first phase, and gives it up.
func (st *stage) stick(ctx context.Context, a *app, key string) error {
	_, err := a.engine.Do(ctx, idem.Request{Key: key, Method: "POST", Route: "POST /tips", Path: "/tips", Identity: jane}, func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "tip_created", func(context.Context, *idem.Tx) (string, error) { return "tip_7", nil }); err != nil {
			return idem.Response{}, err
		}
		return idem.Response{}, errLost
	})
	if err == nil {
		return fmt.Errorf("%s was answered", key)
	}
	rec, err := st.open(ctx, a, "POST /tips")
	if err != nil {
		return err
	}
	return a.engine.MarkStuck(ctx, state.TicketFor(rec), "the mail's template is missing")
}

// open finds an open operation of a route.
func (st *stage) open(ctx context.Context, a *app, route string) (*store.Record, error) {
	out, err := st.client.Scan(ctx, &dynamodb.ScanInput{TableName: &a.table})
	if err != nil {
		return nil, err
	}
	for _, it := range out.Items {
		if rec, err := layout.Read(it); err == nil && rec != nil && rec.Route == route && rec.State == store.Open {
			return rec, nil
		}
	}
	return nil, fmt.Errorf("no operation of %s is open", route)
}

// copyOf is a record like it of another key and time.
func copyOf(it item, i int, at time.Time) item {
	c := maps.Clone(it)
	pk := it["pk"].(*types.AttributeValueMemberS).Value
	sum := sha256.Sum256([]byte(strconv.Itoa(i)))
	c["pk"] = str(pk[:len(pk)-43] + base64.RawURLEncoding.EncodeToString(sum[:]))
	c["id"] = str(fmt.Sprintf("copy%022d", i))
	c["created_ms"], c["run_ms"] = num(at.UnixMilli()), num(at.Add(230*time.Millisecond).UnixMilli())
	return c
}

// park parks the jobs of the newest record, as a drain does after too many tries.
func (st *stage) park(ctx context.Context, a *app, why string) error {
	all, err := st.items(ctx, a.table)
	if err != nil {
		return err
	}
	for _, it := range all {
		jobs, ok := it["jobs"].(*types.AttributeValueMemberM)
		id, _ := it["id"].(*types.AttributeValueMemberS)
		if !ok || len(jobs.Value) == 0 || id == nil || strings.HasPrefix(id.Value, "copy") {
			continue
		}
		for name, job := range jobs.Value {
			if job.(*types.AttributeValueMemberM).Value["f"] != nil {
				continue // it is parked already
			}
			if _, err := st.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: &a.table, Key: item{"pk": it["pk"]},
				UpdateExpression:          new("SET jobs.#n.f = :f, jobs.#n.t = :t"),
				ExpressionAttributeNames:  map[string]string{"#n": name},
				ExpressionAttributeValues: item{":f": str(why), ":t": num(8)},
			}); err != nil {
				return err
			}
			return nil
		}
	}
	return errors.New("no job to park")
}

// Hostile has the texts that must stay texts.
const hostile = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>"'&javascript:window.hacked=3`

// hostile fills a table with names and errors that try to be markup.
func (st *stage) hostile(ctx context.Context) error {
	a, err := st.app(ctx, "hostile")
	if err != nil {
		return err
	}
	evil := fmt.Errorf("%s", hostile)
	for _, key := range []string{"evil-1", "evil-2"} {
		_, err = a.engine.Do(ctx, idem.Request{Key: key, Method: "POST", Route: hostile, Path: "/" + hostile, Body: []byte(hostile), Identity: jane},
			func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Foreign(ctx, hostile, func(context.Context, *idem.Tx) (string, error) { return "", evil }, idem.NotIdempotent())
				return idem.Response{}, err
			})
		if !errors.Is(err, idem.ErrStuck) {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// awkward is a text that a shell would take for something else.
const awkward = `it's "$HOME"  $(touch hacked) ` + "`id` \\ !"

// quoted is the result of a call, with a field of an awkward name.
type quoted struct {
	Price int `json:"price in $"`
}

// awkward fills a table with two records whose texts a shell must not take as they stand,
// keys included: one that is stuck at a call, one whose attempt is at work.
func (st *stage) awkward(ctx context.Context) error {
	a, err := st.app(ctx, "awkward")
	if err != nil {
		return err
	}
	req := idem.Request{Key: "awkward-1", Method: "POST", Route: "POST /quotes", Path: "/quotes", Identity: idem.Identity{Kind: "jwt", Subject: awkward}}
	if _, err = a.engine.Do(ctx, req, func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Foreign(ctx, "asked", func(_ context.Context, tx *idem.Tx) (string, error) { return tx.Key("the bank"), nil }); err != nil {
			return idem.Response{}, err
		}
		_, err := idem.Foreign(ctx, "quoted", func(context.Context, *idem.Tx) (quoted, error) { return quoted{}, errLost }, idem.NotIdempotent())
		return idem.Response{}, err
	}); !errors.Is(err, idem.ErrStuck) {
		return fmt.Errorf("awkward-1: %w", err)
	}
	all, err := st.items(ctx, a.table)
	if err != nil || len(all) != 1 {
		return fmt.Errorf("%d records, %w", len(all), err)
	}
	moved := maps.Clone(all[0])
	moved["pk"] = str("v1#rides#" + awkward)
	if _, err := st.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &a.table, Key: item{"pk": all[0]["pk"]}}); err != nil {
		return err
	}
	if err := st.write(ctx, a.table, []item{moved}); err != nil {
		return err
	}
	return a.hold(ctx, "held-2")
}

func (st *stage) empty(ctx context.Context) error {
	_, err := st.app(ctx, "empty")
	return err
}

func (st *stage) items(ctx context.Context, table string) (all []item, err error) {
	pages := dynamodb.NewScanPaginator(st.client, &dynamodb.ScanInput{TableName: &table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
	}
	return all, nil
}

// write puts items, by some requests at a time.
func (st *stage) write(ctx context.Context, table string, items []item) error {
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			for at := i * 25; at < len(items) && errs[i] == nil; at += len(errs) * 25 {
				var puts []types.WriteRequest
				for _, it := range items[at:min(at+25, len(items))] {
					puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: it}})
				}
				_, errs[i] = st.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: puts}})
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
