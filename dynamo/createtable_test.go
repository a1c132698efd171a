package dynamo_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
)

// tables answers the calls that make a table: with an error's type, or with a status of the
// table.
type tables struct {
	calls  []string
	errors map[string]string // by operation
	states []string          // of the table, one for each look at it; the last one stays
}

func (s *tables) Do(r *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.calls = append(s.calls, op)
	body, status := "{}", http.StatusOK
	switch kind := s.errors[op]; {
	case kind != "":
		body, status = `{"__type":"com.amazonaws.dynamodb.v20120810#`+kind+`","message":"injected"}`, http.StatusBadRequest
	case op == "DescribeTable":
		body = `{"Table":{"TableStatus":"` + s.states[0] + `"}}`
		s.states = s.states[min(1, len(s.states)-1):]
	}
	return &http.Response{
		StatusCode: status, Request: r, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// A table is made, waited for, and told which items expire. One that exists stays as it is.
func TestCreateTable(t *testing.T) {
	t.Parallel()
	made := []string{"CreateTable", "DescribeTable", "DescribeTable", "UpdateTimeToLive"}
	for name, tt := range map[string]struct {
		errors map[string]string
		states []string
		calls  []string
		err    string
	}{
		"new":             {states: []string{"CREATING", "ACTIVE"}, calls: made},
		"there already":   {errors: map[string]string{"CreateTable": "ResourceInUseException"}, calls: made[:1]},
		"denied":          {errors: map[string]string{"CreateTable": "AccessDeniedException"}, calls: made[:1], err: "create table t: "},
		"can't be seen":   {errors: map[string]string{"DescribeTable": "AccessDeniedException"}, calls: made[:2], err: "create table t: "},
		"without its TTL": {states: []string{"CREATING", "ACTIVE"}, errors: map[string]string{"UpdateTimeToLive": "AccessDeniedException"}, calls: made, err: "TTL of t: "},
		"never there":     {states: []string{"CREATING"}, calls: made[:3], err: "create table t: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &tables{errors: tt.errors, states: tt.states}
			client := dynamodb.New(stubOf(s).Options())
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if name == "never there" {
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			err := dynamo.CreateTable(ctx, client, "t")
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
			calls := s.calls
			if name == "never there" {
				calls = slices.Compact(calls)
				tt.calls = slices.Compact(slices.Clone(tt.calls))
			}
			if diff := cmp.Diff(tt.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
