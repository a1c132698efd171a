package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	gocmp "github.com/google/go-cmp/cmp"
)

func tagged(run, expires string) []cfntypes.Tag {
	return []cfntypes.Tag{{Key: aws.String(tagExpires), Value: &expires}, {Key: aws.String(tagRun), Value: &run}}
}

// Leftovers are the runs whose stack or bucket is there, also a bucket without tags: no nested stack, no deleted one, and
// nothing of others.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	const a, b, none, others = Prefix + "a", Prefix + "b", Prefix + "none", Prefix + "others"
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	made := func() *cloud {
		c := newCloud()
		c.deaf = true
		c.form(a, tagged(a, at.Format(time.RFC3339)))
		c.form(Prefix+"c-Samekey-1A2B", tagged(Prefix+"c", ""))
		c.form(a+"-Samekey-1A2B", tagged(a, at.Format(time.RFC3339)))
		c.form(Prefix+"gone", tagged(Prefix+"gone", "")).StackStatus = cfntypes.StackStatusDeleteComplete
		c.form("payments", nil)
		c.stacks["nameless"] = &formed{}
		c.buckets[a] = &bucket{tags: map[string]string{tagRun: a, tagExpires: "never"}}
		c.buckets[b] = &bucket{tags: map[string]string{tagRun: b, tagExpires: at.Add(time.Hour).Format(time.RFC3339)}}
		c.buckets[none] = &bucket{}
		c.buckets[others] = &bucket{tags: map[string]string{"team": "payments"}}
		return c
	}
	want := []Leftover{{a, at}, {b, at.Add(time.Hour)}, {none, time.Time{}}}
	sorted := func(all []Leftover) []Leftover {
		return slices.SortedFunc(slices.Values(all), func(a, b Leftover) int { return cmp.Compare(a.Run, b.Run) })
	}
	c := made()
	found, err := c.account(t).Leftovers(t.Context())
	if diff := gocmp.Diff(want, sorted(found)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, denied := range []string{"DescribeStacks", "ListBuckets", "GetBucketTagging"} {
		c := made()
		a := c.account(t)
		c.before = func(_ int, op string) error {
			if op == denied {
				return refusal("AccessDenied", "no\n"+op)
			}
			return nil
		}
		if found, err := a.Leftovers(t.Context()); found != nil || err == nil || err.Error() != "AccessDenied: no "+denied {
			t.Errorf("%s: %v, %v", denied, found, err)
		}
	}
}

// What a removal may not, or can't, remove stays, and it says why at once; it goes on while AWS can't be reached.
func TestRemoval(t *testing.T) {
	t.Parallel()
	const run = Prefix + "a"
	lost, denied := errors.New("connection reset by peer"), refusal("AccessDenied", "no")
	once := func(op string, do func() error) func(int, string) error {
		times := 0
		return func(_ int, called string) error {
			if called == op {
				if times++; times == 1 {
					return do()
				}
			}
			return nil
		}
	}
	for name, test := range map[string]struct {
		prepare func(*cloud, *Account)
		err     string
		took    time.Duration
		left    []string
	}{
		"another's bucket":      {func(c *cloud, _ *Account) { c.buckets[run] = &bucket{tags: map[string]string{"team": "payments"}} }, "", 0, []string{"bucket " + run}},
		"one without tags":      {func(c *cloud, _ *Account) { c.buckets[run] = &bucket{} }, "", 0, nil},
		"a full one without":    {func(c *cloud, _ *Account) { c.buckets[run] = &bucket{keys: map[string]bool{"a": true}} }, "BucketNotEmpty", 0, []string{"bucket " + run}},
		"a full one, just made": {func(c *cloud, a *Account) { c.buckets[run], a.made = &bucket{keys: map[string]bool{"a": true}}, true }, "", 0, nil},
		"whose, nobody may know": {func(c *cloud, _ *Account) {
			c.buckets[run] = &bucket{}
			c.before = func(_ int, op string) error {
				if op == "GetBucketTagging" {
					return denied
				}
				return nil
			}
		}, "AccessDenied", 0, []string{"bucket " + run}},
		"a bucket that isn't emptied": {func(c *cloud, _ *Account) {
			c.buckets[run] = &bucket{tags: map[string]string{tagRun: run}, keys: map[string]bool{"a": true, "b": true, "c": true}}
			c.before = once("ListObjectsV2", func() error { return lost })
		}, "", time.Minute, nil},
		"a locked object": {func(c *cloud, _ *Account) {
			c.buckets[run], c.kept = &bucket{tags: map[string]string{tagRun: run}, keys: map[string]bool{"a": true}}, map[string]bool{"a": true}
		}, "not deleted: a in " + run + ": it is locked", 0, []string{"bucket " + run}},
		"a name that is none": {func(c *cloud, _ *Account) {
			c.before = once("DescribeStacks", func() error { return refusal("ValidationError", "1 validation error detected") })
		}, "1 validation error detected", 0, nil},
		"AWS is down": {func(c *cloud, _ *Account) { c.before = func(int, string) error { return lost } }, "operation error", removal, nil},
		"beyond plan": {func(c *cloud, _ *Account) { c.before = func(int, string) error { return errOverPlan } }, errOverPlan.Error(), 0, nil},
		"a stack with its buckets": {func(c *cloud, _ *Account) {
			c.form(run, tagged(run, "")).StackStatus = cfntypes.StackStatusCreateComplete
			c.buckets["anothers"] = &bucket{keys: map[string]bool{"a": true}}
		}, "", time.Minute, []string{"bucket anothers"}},
		"a deletion of which nobody hears": {func(c *cloud, _ *Account) {
			s := c.form(run, tagged(run, ""))
			s.StackStatus = cfntypes.StackStatusCreateComplete
			looks := 0
			c.before = func(_ int, op string) error {
				if op == "DescribeStacks" {
					if looks++; looks == 2 {
						return lost
					}
				}
				return nil
			}
		}, "", 2 * time.Minute, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			a := c.account(t)
			a.pause = time.Minute
			test.prepare(c, a)
			began := time.Now()
			err := a.Clean(t.Context(), run)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) || time.Since(began) != test.took {
				t.Errorf("%s: after %s %v", name, time.Since(began), err)
			}
			if diff := gocmp.Diff(test.left, c.left()); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			if b := c.buckets["anothers"]; b != nil && len(b.keys) != 1 {
				t.Errorf("%s: another's bucket was emptied", name)
			}
		})
	}
}

// A stand-in goes on with a stack that is deleted while it is made, so that its end is awaited first. AWS stops.
func TestRemovedWhileMade(t *testing.T) {
	t.Parallel()
	const run = Prefix + "a"
	for _, standIn := range []bool{true, false} {
		for name, before := range map[string]func(*cloud){
			"made":   func(*cloud) {},
			"done":   func(c *cloud) { c.find(run).StackStatus = cfntypes.StackStatusCreateComplete },
			"failed": func(c *cloud) { c.fails = "no" },
		} {
			c := newCloud()
			a := c.account(t)
			if standIn {
				a.bare.BaseEndpoint = aws.String("http://127.0.0.1:1")
			}
			c.form(run, tagged(run, "")).looks = 9
			before(c)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			err := a.Clean(ctx, run)
			cancel()
			if left := c.left(); err != nil || left != nil || (c.early == nil) != (standIn || name == "done") {
				t.Errorf("%s, a stand-in: %t: deleted early: %v, left: %v, %v", name, standIn, c.early, left, err)
			}
		}
	}
}
