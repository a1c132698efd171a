package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
)

// DynamoDB Local differs in what the table says, and in nothing else; no examination uses more than
// was planned for it.
func TestAssumptions(t *testing.T) {
	t.Parallel()
	o := dynamotest.Start(t).Client(dynamo.Tune).Options()
	m := &meter{}
	cfg := metered(aws.Config{Region: o.Region, Credentials: o.Credentials, HTTPClient: o.HTTPClient, BaseEndpoint: o.BaseEndpoint}, m)
	p := &Place{
		StandIn: "DynamoDB Local", Local: true, DB: dynamodb.NewFromConfig(cfg, dynamo.Tune), Streams: dynamodbstreams.NewFromConfig(cfg),
		Semantics: "assumptions", meter: m,
	}
	if err := dynamo.CreateTable(t.Context(), dynamodb.New(o), p.Semantics); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range Claims() {
		if !strings.HasPrefix(c.Name, "dynamodb.") || c.Examine == nil {
			continue
		}
		n++
		m.begin(c.Cost)
		figure, err := c.Examine(t.Context(), p)
		expected := Passed
		if c.Differs {
			expected = NotShown
		}
		if r := c.judge(p, figure, err); r.Status != expected || c.Differs && !strings.HasPrefix(r.Why, "the stand-in differs") {
			t.Errorf("%s is %s: %s (%s)", c.Name, r.Status, r.Why, r.Figure)
		}
	}
	if n < 20 {
		t.Errorf("%d assumptions", n)
	}
}
