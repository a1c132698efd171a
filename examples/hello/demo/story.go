package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// story plays and checks.
type story struct {
	*stage
	checks []check
}

type check struct {
	what string
	ok   bool
}

// reply is what a client got.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (s *story) tell(ctx context.Context) {
	key := rand.Text()
	first := s.newRequest(ctx, key)
	s.replay(ctx, key, first)
	s.mismatch(ctx, key)
	s.otherUser(ctx, key, first)
	s.missing400(ctx)
	s.fiftyAtOnce(ctx)
	s.large(ctx)
	if s.db == nil {
		return
	}
	s.expired(ctx, key, first)
	s.killed(ctx)
}

const jane = `{"name":"Jane"}`

func (s *story) newRequest(ctx context.Context, key string) reply {
	s.scene("A new key: the handler runs.")
	before := s.runs.count()
	r := s.post(ctx, "jane", key, jane)
	s.show(r)
	s.check("new: 201, the handler ran once", r.status == http.StatusCreated && s.runs.count() == before+1)
	s.check("new: not marked as a replay", r.header.Get("Idempotent-Replayed") == "")
	s.counts(map[string]int{"PutItem": 1, "UpdateItem": 1})
	return r
}

func (s *story) replay(ctx context.Context, key string, first reply) {
	s.scene("The same request again: the stored answer, byte for byte.")
	before := s.runs.count()
	r := s.post(ctx, "jane", key, jane)
	s.show(r)
	s.check("replay: same status and bytes, handler did not run", r.same(first) && s.runs.count() == before)
	s.check("replay: marked as one", r.header.Get("Idempotent-Replayed") == "true")
	s.counts(map[string]int{"PutItem": 1})
}

func (s *story) mismatch(ctx context.Context, key string) {
	s.scene("The same key with another request: refused, nothing given away.")
	before := s.runs.count()
	r := s.post(ctx, "jane", key, `{"name":"Joan"}`)
	s.show(r)
	s.check("mismatch: 422, handler did not run", r.status == http.StatusUnprocessableEntity && s.runs.count() == before)
	s.counts(map[string]int{"PutItem": 1})
}

func (s *story) otherUser(ctx context.Context, key string, first reply) {
	s.scene("The same key from another user: an operation of its own.")
	before := s.runs.count()
	r := s.post(ctx, "omar", key, jane)
	s.show(r)
	s.check("other user: own 201, not Jane's answer", r.status == http.StatusCreated && !bytes.Equal(r.body, first.body) && s.runs.count() == before+1)
	s.counts(map[string]int{"PutItem": 1, "UpdateItem": 1})
}

func (s *story) missing400(ctx context.Context) {
	s.scene("No key at all: refused before anything is stored.")
	before := s.runs.count()
	r := s.post(ctx, "jane", "", jane)
	s.show(r)
	s.check("missing key: 400, handler did not run", r.status == http.StatusBadRequest && s.runs.count() == before)
	s.counts(map[string]int{})
}

func (s *story) fiftyAtOnce(ctx context.Context) {
	s.scene("Fifty equal requests at once: one runs, the others are told to come back.")
	before, key := s.runs.count(), rand.Text()
	const clients = 50
	replies := make([]reply, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() { replies[i] = s.post(ctx, "jane", key, `{"name":"Jane","linger_ms":500}`) })
	}
	wg.Wait()
	byStatus := map[string]int{}
	bodies := map[string]bool{}
	for _, r := range replies {
		name := strconv.Itoa(r.status)
		if r.header.Get("Idempotent-Replayed") != "" {
			name += " replayed"
		}
		byStatus[name]++
		if r.status == http.StatusCreated {
			bodies[string(r.body)] = true
		}
	}
	fmt.Printf("  answers: %v\n", byStatus)
	s.check("50 at once: one runs", byStatus["201"] == 1 && s.runs.count() == before+1)
	s.check("50 at once: the others get 409 or the replay", byStatus["201"]+byStatus["201 replayed"]+byStatus["409"] == clients && len(bodies) == 1)
	s.counts(map[string]int{"PutItem": clients, "UpdateItem": 1})
}

func (s *story) large(ctx context.Context) {
	s.scene("An answer of 1 MB: replayed byte for byte like any other.")
	key, body := rand.Text(), `{"name":"Jane","letters":1000000}`
	first, again := s.post(ctx, "jane", key, body), s.post(ctx, "jane", key, body)
	s.show(first)
	s.show(again)
	s.check("1 MB: replayed byte for byte", len(first.body) > 1_000_000 && again.same(first) && again.header.Get("Idempotent-Replayed") == "true")
	// two claims, and a body in two items beside the record: the finish writes them, the replay reads
	// them
	s.counts(map[string]int{"PutItem": 2, "UpdateItem": 1, "BatchWriteItem": 1, "BatchGetItem": 1})
}

// expired moves the record's expiry into the past, since a key lives for at least an hour.
// TTL may delete days late, so the claim itself looks at the time.
func (s *story) expired(ctx context.Context, key string, first reply) {
	s.scene("The key has expired (its time is set back by hand), its record is still there: a new request.")
	before := s.runs.count()
	if err := s.age(ctx, first); err != nil {
		fmt.Println("  ", err)
	}
	s.calls.take()
	r := s.post(ctx, "jane", key, jane)
	s.show(r)
	s.check("expired: runs anew", r.status == http.StatusCreated && !bytes.Equal(r.body, first.body) && s.runs.count() == before+1)
	s.counts(map[string]int{"PutItem": 1, "UpdateItem": 1})
}

// killed kills the process in the middle of a request. The key is held until the lease is
// over: the invocation's deadline and two seconds.
func (s *story) killed(ctx context.Context) {
	s.scene("The process is killed in the middle (SIGKILL).")
	before, key, body := s.runs.count(), rand.Text(), `{"name":"Jane","linger_ms":1500}`
	done := make(chan reply, 1)
	go func() { done <- s.post(ctx, "jane", key, body) }()
	for s.runs.count() == before && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond) // until the handler runs
	}
	if running := s.function.Running(); len(running) == 1 {
		fmt.Printf("  kill -9 %d\n", running[0].PID)
		if err := s.function.Kill(running[0].PID); err != nil {
			fmt.Println("  ", err)
		}
	}
	r := <-done
	s.show(r)
	s.check("killed: the client gets a 5xx", r.status >= http.StatusInternalServerError)

	r = s.post(ctx, "jane", key, body)
	s.show(r)
	wait, _ := strconv.Atoi(r.header.Get("Retry-After"))
	s.check("killed: a retry is told when the lease is over", r.status == http.StatusConflict && wait >= 1 && wait <= 5)
	fmt.Printf("  waiting %d s, as Retry-After says …\n", wait)
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(wait) * time.Second):
	}
	s.calls.take()
	r = s.post(ctx, "jane", key, body)
	s.show(r)
	s.check("killed: after that a retry takes over and finishes", r.status == http.StatusCreated && s.runs.count() == before+2)
	s.counts(map[string]int{"PutItem": 1, "UpdateItem": 2})
	again := s.post(ctx, "jane", key, body)
	s.show(again)
	s.check("killed: and its answer replays", again.same(r) && again.header.Get("Idempotent-Replayed") == "true")
	s.counts(map[string]int{"PutItem": 1})
}

// age sets exp_s of the record that holds r's answer into the past.
func (s *story) age(ctx context.Context, r reply) error {
	page, err := s.db.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String(table)})
	if err != nil {
		return err
	}
	for _, item := range page.Items {
		resp, _ := item["resp"].(*types.AttributeValueMemberM)
		if resp == nil {
			continue
		}
		if b, ok := resp.Value["b"].(*types.AttributeValueMemberB); !ok || !bytes.Equal(b.Value, r.body) {
			continue
		}
		_, err := s.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: aws.String(table), Key: map[string]types.AttributeValue{"pk": item["pk"]},
			UpdateExpression:          aws.String("SET exp_s = :past"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":past": &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Unix()-60, 10)}},
		})
		return err
	}
	return errors.New("no record holds the first answer")
}

func (s *story) post(ctx context.Context, user, key, body string) (r reply) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.api+"/hello", strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+user)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	r.status, r.header = resp.StatusCode, resp.Header
	r.body, r.err = io.ReadAll(resp.Body)
	return r
}

func (r reply) same(other reply) bool {
	return r.err == nil && r.status == other.status && bytes.Equal(r.body, other.body) &&
		r.header.Get("Content-Type") == other.header.Get("Content-Type")
}

func (s *story) scene(title string) {
	s.calls.take()
	fmt.Printf("\n%s\n", title)
}

// show prints an answer as the client sees it.
func (s *story) show(r reply) {
	if r.err != nil {
		fmt.Println("  error:", r.err)
		return
	}
	body := string(r.body)
	if len(body) > 120 {
		body = fmt.Sprintf("%s … (%d bytes)", body[:100], len(body))
	}
	fmt.Printf("  %d %s\n", r.status, body)
	for _, name := range []string{"Idempotent-Replayed", "Retry-After"} {
		if v := r.header.Get(name); v != "" {
			fmt.Printf("      %s: %s\n", name, v)
		}
	}
}

func (s *story) check(what string, ok bool) { s.checks = append(s.checks, check{what, ok}) }

// counts prints and checks the DynamoDB calls since the last time.
func (s *story) counts(want map[string]int) {
	if s.db == nil {
		return
	}
	got := s.calls.take()
	fmt.Printf("  DynamoDB calls: %s\n", list(got))
	title := s.checks[len(s.checks)-1].what
	title, _, _ = strings.Cut(title, ":")
	s.check(fmt.Sprintf("%s: DynamoDB calls: %s", title, list(want)), list(got) == list(want))
}

func list(counts map[string]int) string {
	var parts []string
	for _, op := range []string{"PutItem", "UpdateItem", "GetItem", "TransactWriteItems", "BatchWriteItem", "BatchGetItem"} {
		if n := counts[op]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, op))
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// summary prints the table of checks.
func (s *story) summary() bool {
	fmt.Println("\nChecks")
	ok := true
	for _, c := range s.checks {
		mark := "ok  "
		if !c.ok {
			mark, ok = "FAIL", false
		}
		fmt.Printf("  %s  %s\n", mark, c.what)
	}
	if s.db == nil {
		fmt.Println("\nLeft out, because there is no DynamoDB here: real processes and their SIGKILL, expiry, take-over, and every count of calls.")
		fmt.Println("The story ran in one process on the memory store. What was looked for:")
		fmt.Println("  " + strings.ReplaceAll(s.missing, "\n", "\n  "))
	}
	return ok
}
