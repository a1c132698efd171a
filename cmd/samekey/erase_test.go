package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// of returns a request of a caller. Its answer contains the word secret and the caller's name.
func of(caller, key string) idem.Request {
	r := request()
	r.Key, r.Identity.Subject = key, caller
	return r
}

// erase removes what the finished requests of a person left: in records,
// in other items, and sealed. The keys stay taken. Records of others
// stay unchanged, and so do unfinished requests until a person decides.
func TestErase(t *testing.T) {
	for name, sealed := range map[string]bool{"plain": false, "sealed": true} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			if sealed {
				d.sealed(t)
			}
			answer := func(caller, key string, body []byte, staged ...idem.Job) error {
				_, err := d.engine.Do(t.Context(), of(caller, key), func(ctx context.Context) (idem.Response, error) {
					if err := idem.Stage(ctx, staged...); len(staged) > 0 && err != nil {
						return idem.Response{}, err
					}
					return idem.Response{Status: 201, Body: body}, nil
				})
				return err
			}
			large := storetest.Noise(100 << 10)
			for key, body := range map[string][]byte{"small-key-of-jane": []byte("secret"), "large-key-of-jane": large} {
				if err := errors.Join(answer("jane", key, body), answer("omar", key, body)); err != nil {
					t.Fatal(err)
				}
			}
			if err := answer("jane", "key-with-a-job", nil, idem.NewJob("mail", "jane's address")); err != nil {
				t.Fatal(err)
			}
			others := func() (all []map[string]types.AttributeValue, contents int) {
				for _, it := range d.items(t) {
					if it["b"] != nil {
						contents++
					}
					all = append(all, it)
				}
				return all, contents
			}
			_, before := others()

			if sealed {
				code, stdout, _ := call(t, d.env, "erase", "--caller", "jwt:jane", "--yes", "--pages", "1000")
				if _, after := others(); code != 3 || !strings.Contains(stdout, "5 sealed records") || after != before {
					t.Errorf("without the keys: code %d, %s", code, stdout)
				}
				d.keysFrom(t, "desk")
			}
			code, stdout, stderr := call(t, d.env, "erase", "--caller", "jwt:jane", "--dry-run", "--pages", "1000")
			if code != 3 || !strings.Contains(stdout, "erased: 0") || !strings.Contains(stderr, "to erase: 2.") {
				t.Errorf("the dry run: code %d, %s%s", code, stdout, stderr)
			}
			code, stdout, stderr = call(t, d.env, "erase", "--caller", "jwt:jane", "--yes", "--pages", "1000")
			if code != 3 || !strings.Contains(stdout, "erased: 2") || !strings.Contains(stdout, "undelivered jobs") || strings.Count(stdout, "v1#rides#") != 1 {
				t.Errorf("code %d, %s%s", code, stdout, stderr)
			}
			if _, after := others(); after != before/2 {
				t.Errorf("%d companions are left of %d, want omar's", after, before)
			}
			for key, body := range map[string][]byte{"small-key-of-jane": []byte("secret"), "large-key-of-jane": large} {
				never := func(context.Context) (idem.Response, error) {
					t.Error("it runs again")
					return idem.Response{}, nil
				}
				again := func(r idem.Request) (idem.Result, error) { return d.engine.Do(t.Context(), r, never) }
				if res, err := d.engine.Serve(t.Context(), of("jane", key), never); err != nil || res.Status != 410 || strings.Contains(string(res.Body), "too large") {
					t.Errorf("jane's retry got %d %s, %v", res.Status, res.Body, err)
				}
				other := of("jane", key)
				other.Body = []byte("another")
				if _, err := again(other); !errors.Is(err, idem.ErrMismatch) {
					t.Errorf("jane's other request got %v", err)
				}
				if res, err := again(of("omar", key)); err != nil || string(res.Body) != string(body) {
					t.Errorf("omar's retry got %d bytes, %v", len(res.Body), err)
				}
				var story records.Story
				if err := json.Unmarshal([]byte(d.ok(t, "get", "--json", "--key", key, "--scope", "jwt:jane")), &story); err != nil {
					t.Fatal(err)
				}
				rec, err := d.store.Load(t.Context(), story.Record)
				if err != nil || rec.Scope != "" || rec.Response == nil || rec.Response.Status != 201 || len(rec.Response.Body) > 0 ||
					len(rec.Settled) != 1 || rec.Settled[0].By != "jane" || rec.Settled[0].What != "erase" {
					t.Errorf("the record is %+v, %v", rec, err)
				}
			}
			code, stdout, _ = call(t, d.env, "erase", "--caller", "jwt:jane", "--yes", "--pages", "1000")
			if code != 3 || !strings.Contains(stdout, "erased: 0") {
				t.Errorf("the second time: code %d, %s", code, stdout)
			}
		})
	}
	d := newDesk(t)
	d.fails(t, 2, "give --caller SCOPE", "erase")
}

// erase leaves an operation that isn't finished, or that was written after it was shown.
func TestEraseOnlyWhatIsAsSeen(t *testing.T) {
	t.Parallel()
	mem := &idem.MemoryStore{}
	e := idem.New(mem, callertest.Anybody)
	only := func() *store.Record {
		for _, r := range mem.Records() {
			return r
		}
		return nil
	}
	if _, err := e.Do(t.Context(), of("jane", customersKey), func(context.Context) (idem.Response, error) {
		if err := e.Erase(t.Context(), state.TicketFor(only()), "jane"); !errors.Is(err, jobs.ErrMoved) {
			t.Errorf("got %v for an operation under way", err)
		}
		return idem.Response{Status: 201, Body: []byte("secret")}, nil
	}); err != nil {
		t.Fatal(err)
	}
	seen := state.TicketFor(only())
	stale := seen
	stale.Ver--
	if err := e.Erase(t.Context(), stale, "jane"); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("got %v for a record that has moved", err)
	}
	if err := e.Erase(t.Context(), seen, "jane"); err != nil {
		t.Fatal(err)
	}
	if r := only(); r.Scope != "" || len(r.Response.Body) > 0 {
		t.Errorf("got %+v", r)
	}
	if err := e.Erase(t.Context(), state.TicketFor(only()), "jane"); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("got %v for the second time", err)
	}
}

// erase finds a person by the subject alone, in every form of a scope, in every
// namespace, and in expired records. Without a record it ends with exit code 3.
func TestEraseEveryForm(t *testing.T) {
	d := newDesk(t)
	finish := func(namespace string, change func(*idem.Request), opts ...func(*idem.Options)) {
		r := of("https://id.example|jane", "key-of-jane-in-this-form")
		change(&r)
		e := idem.New(d.store, append([]func(*idem.Options){callertest.Anybody, func(o *idem.Options) { o.Namespace = namespace }}, opts...)...)
		if _, err := e.Do(t.Context(), r, func(context.Context) (idem.Response, error) {
			return idem.Response{Status: 201, Body: []byte("secret")}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range []string{"rides", "shop"} {
		finish(namespace, func(*idem.Request) {})
		finish(namespace, func(r *idem.Request) { r.Operation = "refund" })
		finish(namespace, func(r *idem.Request) { r.Tenant = "acme" })
		finish(namespace, func(r *idem.Request) { r.Identity = idem.Identity{Kind: "lambda", Subject: "a1b2c3|jane"} })
	}
	finish("rides", func(r *idem.Request) { r.Identity.Subject = "https://id.example|janet" })
	d.expire(t, "shop")
	code, stdout, stderr := call(t, d.env, "erase", "--caller", "jnae", "--yes", "--pages", "1000")
	if code != 3 || !strings.Contains(stderr, "no record of jnae; records compared: 9") {
		t.Errorf("a typo: got code %d, %s%s, want 3", code, stdout, stderr)
	}
	out := d.ok(t, "list", "--caller", "jane", "--json", "--pages", "1000")
	if n := strings.Count(out, `"record"`); n != 8 {
		t.Errorf("list --caller shows %d operations, want 8:\n%s", n, out)
	}
	code, stdout, stderr = call(t, d.env, "erase", "--caller", "jane", "--yes", "--pages", "1000")
	if code != 0 || !strings.Contains(stdout, "erased: 8") || !strings.Contains(stderr, "2 of operation:refund|jwt:https://id.example|jane") {
		t.Errorf("got code %d, %s%s, want 8 erased", code, stdout, stderr)
	}
	for _, it := range d.items(t) {
		if leaks := fmt.Sprint(it["scope"], it["resp"]); strings.Contains(leaks, "jane}") {
			t.Errorf("left: %s", leaks)
		}
	}
}

// expire sets the end of a namespace's records to an hour ago: TTL removes them only after days.
func (d *desk) expire(t *testing.T, namespace string) {
	t.Helper()
	table := d.env["IDEM_TABLE"]
	for _, it := range d.items(t) {
		pk, _ := it["pk"].(*types.AttributeValueMemberS)
		if !strings.HasPrefix(pk.Value, "v1#"+namespace+"#") {
			continue
		}
		it["exp_s"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(time.Now().Add(-time.Hour).Unix(), 10)}
		if _, err := d.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
			t.Fatal(err)
		}
	}
}

// get finds a key under a scope with an issuer, as the client's header had
// it, by the provider's key of a finished operation, and in a sealed table.
// It never reports "not found" for records that it couldn't compare.
func TestGetFindsWhatIsThere(t *testing.T) {
	d := newDesk(t)
	d.sealed(t)
	r := of("https://id.example|jane", "a key with spaces")
	r.Header, r.Key = map[string][]string{"Idempotency-Key": {`"a key with spaces"`}}, ""
	var derived string
	if _, err := d.engine.Serve(t.Context(), r, func(ctx context.Context) (idem.Response, error) {
		_, err := idem.Foreign(ctx, "charged", func(_ context.Context, tx *idem.Tx) (string, error) {
			derived = tx.Key("payments")
			return "ch_1", nil
		})
		return idem.Response{Status: 201}, err
	}); err != nil {
		t.Fatal(err)
	}
	scan := []string{"--pages", "1000"}
	if out := d.ok(t, append([]string{"get", derived}, scan...)...); !strings.Contains(out, derived) {
		t.Errorf("a finished operation doesn't show its provider's key:\n%s", out)
	}
	byKey := func(key, scope string) (int, string) {
		code, stdout, stderr := callWith(t, "yes\n", d.env, append([]string{"get", "--key", key, "--scope", scope}, scan...)...)
		return code, stdout + stderr
	}
	if code, out := byKey("a key with spaces", "jane"); code != 1 || !strings.Contains(out, " 1 of 1 records") {
		t.Errorf("without the keys: got code %d, %s, want 1", code, out)
	}
	d.keysFrom(t, "desk")
	for _, key := range []string{"a key with spaces", `"a key with spaces"`} {
		for _, scope := range []string{"jane", "jwt:jane", "jwt:https://id.example|jane"} {
			if code, out := byKey(key, scope); code != 0 || !strings.Contains(out, derived) {
				t.Errorf("%s of %s: got code %d, %s, want 0", key, scope, code, out)
			}
		}
	}
	if code, out := byKey("a key with spaces", "omar"); code != 3 || !strings.Contains(out, "all records were compared") {
		t.Errorf("another caller: got code %d, %s, want 3", code, out)
	}
}

// A list with filters counts the entries that it leaves out. A redrive
// with a namespace stays in the namespace.
func TestFiltersTell(t *testing.T) {
	d := newDesk(t)
	rec := d.stuck(t)
	d.fails(t, 1, "give a smaller body", "settle", "--yes", rec.PK, "--answer", "200", "--body-file", largeFile(t))
	d.park(t)
	d.fails(t, 3, "no parked job matches", "redrive", "--all", "--namespace", "shop", "--yes")
	if out := d.ok(t, "redrive", "--all", "--namespace", "rides", "--yes"); !strings.Contains(out, "jobs redriven: 1;") {
		t.Errorf("redrive in its namespace: %s", out)
	}
}

func largeFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(name, make([]byte, 7<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
