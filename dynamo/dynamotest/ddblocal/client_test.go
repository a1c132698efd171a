package main

import (
	"crypto/rand"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
)

// The environment that ddblocal makes is the one that a program of the library reads. The test is here
// because Go repeats each test of a package that reads the endpoint.
func TestNewClientReadsTheEnvironmentOnly(t *testing.T) {
	db := dynamotest.Start(t)
	set := func(t *testing.T, env map[string]string) {
		t.Helper()
		for _, name := range []string{
			"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
			"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL", "AWS_PROFILE",
		} {
			t.Setenv(name, env[name])
		}
	}
	whole := map[string]string{
		"AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "AKIDTEST", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL_DYNAMODB": db.Endpoint,
	}
	t.Run("it works against the endpoint named there", func(t *testing.T) {
		set(t, whole)
		// A slow machine needs more than 2 s for a new table.
		client, err := dynamo.NewClient(func(o *dynamodb.Options) { o.HTTPClient = http.DefaultClient })
		if err != nil {
			t.Fatal(err)
		}
		if got := client.Options().Region; got != "eu-central-1" {
			t.Errorf("region %q", got)
		}
		name := "client-" + rand.Text()
		if err := dynamo.CreateTable(t.Context(), client, name); err != nil {
			t.Fatal(err)
		}
		if err := dynamo.CreateTable(t.Context(), client, name); err != nil {
			t.Errorf("a second time: %v", err)
		}
	})
	for _, missing := range []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Run("without "+missing+" it says so", func(t *testing.T) {
			env := maps.Clone(whole)
			delete(env, missing)
			set(t, env)
			if _, err := dynamo.NewClient(); err == nil || !strings.Contains(err.Error(), missing) {
				t.Errorf("got %v, want an error that names %s", err, missing)
			}
		})
	}
}
