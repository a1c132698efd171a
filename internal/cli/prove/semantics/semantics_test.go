package semantics

import (
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func local(t *testing.T) Place {
	t.Helper()
	db := dynamotest.Start(t)
	p := Place{DB: db.Client(dynamo.Tune), Table: "semantics-" + t.Name()}
	o := p.DB.Options()
	p.Streams = dynamodbstreams.New(dynamodbstreams.Options{BaseEndpoint: o.BaseEndpoint, Region: o.Region, Credentials: o.Credentials, HTTPClient: o.HTTPClient})
	if err := dynamo.CreateTable(t.Context(), p.DB, p.Table); err != nil {
		t.Fatal(err)
	}
	return p
}
