package kms_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/kms"
	"github.com/samekey/samekey/seal"
)

// While KMS refuses, throttles or is gone, a request gets 503 and Retry-After: nothing
// runs, nothing is written, and the key is as new once KMS is back.
func TestOutagesOfKMS(t *testing.T) {
	t.Parallel()
	for _, outage := range []string{"ThrottlingException", "gone"} {
		t.Run(outage, func(t *testing.T) {
			t.Parallel()
			s := &service{}
			var mu sync.Mutex
			gone, writes := outage == "gone", 0
			if !gone {
				s.fails = outage
			}
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				down := gone
				mu.Unlock()
				if down {
					panic(http.ErrAbortHandler) // the connection breaks
				}
				s.ServeHTTP(w, r)
			}))
			t.Cleanup(srv.Close)
			table := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetItem") {
					mu.Lock()
					writes++
					mu.Unlock()
				}
				_, _ = w.Write([]byte("{}"))
			}))
			t.Cleanup(table.Close)
			credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "s"}, nil
			})
			p, err := kms.New(awskms.New(awskms.Options{Region: "eu-central-1", BaseEndpoint: &srv.URL, Credentials: credentials}), current)
			if err != nil {
				t.Fatal(err)
			}
			db := dynamodb.New(dynamodb.Options{Region: "eu-central-1", BaseEndpoint: &table.URL, Credentials: credentials})
			store, err := dynamo.New(db, "records", func(o *dynamo.Options) { o.Seal = seal.New(p) })
			if err != nil {
				t.Fatal(err)
			}
			engine := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Lease = 5 * time.Minute })
			serve := func() (status int, header http.Header, body string, ran bool) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				re, _ := engine.Serve(ctx, idem.Request{Method: "POST", Path: "/pay", Route: "POST /pay", Header: http.Header{"Idempotency-Key": {"k"}}, Body: []byte("{}")},
					func(context.Context) (idem.Response, error) {
						ran = true
						return idem.Response{Status: 201}, nil
					})
				return re.Status, re.Header, string(re.Body), ran
			}
			status, header, body, ran := serve()
			if status != 503 || header.Get("Retry-After") == "" || !strings.Contains(body, "store_unavailable") || ran || writes != 0 {
				t.Errorf("the answer is %d %v %s; ran: %t; %d writes", status, header, body, ran, writes)
			}
			mu.Lock()
			gone = false
			mu.Unlock()
			s.mu.Lock()
			s.fails = ""
			s.mu.Unlock()
			if status, _, body, ran := serve(); status != 201 || !ran || writes != 2 {
				t.Errorf("KMS is back, and the answer is %d %s; ran: %t; %d writes", status, body, ran, writes)
			}
		})
	}
}
