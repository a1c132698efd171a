package dynamotest

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// TestSeparate has a process with separate databases and a usual one: only in the first
// have two tests tables of their own.
func TestSeparate(t *testing.T) {
	for _, separate := range []string{"1", "0"} {
		t.Run(envSeparate+"="+separate, func(t *testing.T) {
			t.Setenv(envSeparate, separate)
			t.Setenv(envEndpoint, "")
			var s sharedDB
			t.Cleanup(func() {
				if err := s.db.Close(); err != nil {
					t.Error(err)
				}
			})
			one := s.start(t, Find)
			if same := s.start(t, Find); !slices.Equal(one.Env(), same.Env()) {
				t.Errorf("a test has %v and then %v", one.Env(), same.Env())
			}
			if key, err := one.Client().Options().Credentials.Retrieve(t.Context()); err != nil || one.Env()[0] != "AWS_ACCESS_KEY_ID="+key.AccessKeyID {
				t.Errorf("programs get %v, clients %s, %v", one.Env(), key.AccessKeyID, err)
			}
			other := one.separate("another test")
			name := "orders"
			_, err := one.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
				TableName: &name, BillingMode: types.BillingModePayPerRequest,
				AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
				KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
			})
			if err != nil {
				t.Fatal(err)
			}
			tables := func(db *DB) string {
				out, err := db.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{})
				if err != nil {
					t.Fatal(err)
				}
				return strings.Join(out.TableNames, " ")
			}
			seen := name
			if separate == "1" {
				seen = ""
			}
			if tables(one) != name || tables(other) != seen {
				t.Errorf("the tests see %q and %q, want %q and %q", tables(one), tables(other), name, seen)
			}
			if err := other.Close(); err != nil || tables(one) != name {
				t.Errorf("a test closes the database of the others: %v", err)
			}
		})
	}
}
