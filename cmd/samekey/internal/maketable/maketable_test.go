package maketable_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/doctor/doctortest"
	"github.com/samekey/samekey/cmd/samekey/internal/maketable"
)

type object = doctortest.Object

// account is a table, and the changes that were asked for. They take a time.
type account struct {
	*doctortest.World
	slow  time.Duration
	ready time.Time
	said  []string
}

// Do answers a change by nothing, and the rest as the account does.
func (a *account) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if _, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), "."); !strings.HasPrefix(op, "Describe") {
		if body, err = a.change(op, body); err != nil {
			return nil, err
		}
	} else if left := time.Until(a.ready); !a.ready.IsZero() {
		a.Table["TableStatus"] = "ACTIVE"
		if index(a)["IndexStatus"] != nil {
			index(a)["IndexStatus"] = "ACTIVE"
		}
		switch {
		case left > a.slow/2:
			a.Table["TableStatus"] = "UPDATING"
		case left > 0:
			index(a)["IndexStatus"] = "UPDATING"
		default:
			a.Table["TableName"] = "records"
		}
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return a.World.Do(req)
}

// change notes a change, without what dynamo.CreateTableInput has.
func (a *account) change(op string, body []byte) ([]byte, error) {
	var in object
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	delete(in, "TableName")
	if op == "CreateTable" {
		for _, of := range []string{"AttributeDefinitions", "BillingMode", "GlobalSecondaryIndexes", "KeySchema", "StreamSpecification"} {
			delete(in, of)
		}
	}
	said, err := json.Marshal(in)
	a.said = append(a.said, op+" "+string(said))
	if a.Refused["DynamoDB."+op] == "" {
		a.ready = time.Now().Add(a.slow)
	}
	return said, err
}

const (
	denied   = "AccessDeniedException"
	create   = "create the table records: partition key pk, on demand, stream NEW_AND_OLD_IMAGES, index waiting, encrypted by AWS's managed key"
	ttl      = `UpdateTimeToLive {"TimeToLiveSpecification":{"AttributeName":"exp_s","Enabled":true}}`
	recovery = `UpdateContinuousBackups {"PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`
)

func index(a *account) object { return a.Table["GlobalSecondaryIndexes"].([]any)[0].(object) }

// A plan has what a table lacks, its changes are exactly those, and they are made in order.
func TestMake(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(*account, *maketable.Options)
		want []string
	}{
		"as it should be": {func(*account, *maketable.Options) {}, nil},
		"no index's status told": {func(a *account, _ *maketable.Options) {
			delete(index(a), "IndexStatus")
			a.Table["DeletionProtectionEnabled"] = false
		}, []string{"1: turn on deletion protection", `UpdateTable {"DeletionProtectionEnabled":true} done after 0s`}},
		"a table that nobody waits for": {func(a *account, o *maketable.Options) {
			a.Table["TableName"], a.slow, o.Patience, o.NoTTL, o.NoRecovery = "other", time.Minute, time.Second, true, true
		}, []string{
			"there is none",
			"1: " + create + ", deletion protection",
			`CreateTable {"DeletionProtectionEnabled":true,"SSESpecification":{"Enabled":true}}`,
			"1s: " + create + ", deletion protection: it is still under way; run this again later: context deadline exceeded",
		}},
		"no table, few wishes": {func(a *account, o *maketable.Options) {
			a.Table["TableName"] = "other"
			o.NoTTL, o.NoRecovery, o.NoProtection, o.MaxWriteUnits = true, true, true, 1
		}, []string{
			"there is none",
			"1: " + create + ", at most 1 write units a second",
			`CreateTable {"DeletionProtectionEnabled":false,"OnDemandThroughput":{"MaxWriteRequestUnits":1},"SSESpecification":{"Enabled":true}} done after 0s`,
		}},
		"little": {func(a *account, _ *maketable.Options) {
			delete(a.Table, "StreamSpecification")
			index(a)["IndexName"] = "of one's own"
			a.Table["DeletionProtectionEnabled"] = false
			a.TTL, a.Backups = object{"TimeToLiveStatus": "DISABLED"}, object{}
		}, []string{
			"1: turn on the stream NEW_AND_OLD_IMAGES",
			"2: add the index waiting",
			"3: turn on deletion protection",
			"4: turn on TTL on exp_s",
			"5: turn on point-in-time recovery",
			`UpdateTable {"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}} done after 0s`,
			`UpdateTable {"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"waits","AttributeType":"S"},{"AttributeName":"wait_ms","AttributeType":"N"}],"GlobalSecondaryIndexUpdates":[{"Create":{"IndexName":"waiting","KeySchema":[{"AttributeName":"waits","KeyType":"HASH"},{"AttributeName":"wait_ms","KeyType":"RANGE"}],"Projection":{"NonKeyAttributes":["wait_in","about","id","fn","hn","route","last_err","tries","created_ms","run_ms","exp_s"],"ProjectionType":"INCLUDE"}}}]} done after 0s`,
			`UpdateTable {"DeletionProtectionEnabled":true} done after 0s`,
			ttl + " done after 0s",
			recovery + " done after 0s",
		}},
		"little, few wishes": {func(a *account, o *maketable.Options) {
			a.Table["DeletionProtectionEnabled"], a.Table["StreamSpecification"].(object)["StreamEnabled"] = false, false
			a.TTL, a.Refused["DynamoDB.DescribeContinuousBackups"] = object{"TimeToLiveStatus": "DISABLED"}, denied
			o.NoTTL, o.NoRecovery, o.NoProtection = true, true, true
		}, []string{
			"1: turn on the stream NEW_AND_OLD_IMAGES",
			`UpdateTable {"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_AND_OLD_IMAGES"}} done after 0s`,
		}},
		"recovery is off": {func(a *account, _ *maketable.Options) {
			a.Backups = object{"PointInTimeRecoveryDescription": object{"PointInTimeRecoveryStatus": "DISABLED"}}
		}, []string{
			"1: turn on point-in-time recovery",
			recovery + " done after 0s",
		}},
		"TTL is being turned on": {func(a *account, _ *maketable.Options) { a.TTL["TimeToLiveStatus"] = "ENABLING" }, nil},
		"what can't be changed": {func(a *account, o *maketable.Options) {
			a.Table["StreamSpecification"].(object)["StreamViewType"], a.TTL["AttributeName"] = "KEYS_ONLY", "expires"
			index(a)["KeySchema"] = a.Table["KeySchema"]
			o.NoTTL = true
		}, []string{
			"never: its stream shows KEYS_ONLY, and has to show NEW_AND_OLD_IMAGES: turn it off and on again by hand, and point its readers to the new stream",
			"never: the index waiting has another key: delete it by hand, and run this again",
			"never: its TTL is on expires, and has to be on exp_s: turn it off by hand, and run this again an hour later",
		}},
		"another key": {func(a *account, _ *maketable.Options) {
			a.Table["KeySchema"] = append(a.Table["KeySchema"].([]any), object{"AttributeName": "waits", "KeyType": "RANGE"})
			a.TTL["AttributeName"] = "expires"
		}, []string{"never: its key is pk HASH (S), waits RANGE (S), and has to be pk HASH (S): make another table"}},
		"a database without backups": {func(a *account, _ *maketable.Options) {
			a.Refused["DynamoDB.DescribeContinuousBackups"] = "UnknownOperationException"
		}, nil},
		"a database without recovery": {func(a *account, _ *maketable.Options) {
			a.Refused["DynamoDB.UpdateContinuousBackups"], a.Backups = "UnknownOperationException", object{}
		}, []string{
			"1: turn on point-in-time recovery",
			recovery + " done after 0s: this database has none",
		}},
		"nobody may look":            {func(a *account, _ *maketable.Options) { a.Refused["DynamoDB.DescribeTable"] = denied }, []string{"0s: AccessDeniedException"}},
		"nobody may look at TTL":     {func(a *account, _ *maketable.Options) { a.Refused["DynamoDB.DescribeTimeToLive"] = denied }, []string{"0s: AccessDeniedException"}},
		"nobody may look at backups": {func(a *account, _ *maketable.Options) { a.Refused["DynamoDB.DescribeContinuousBackups"] = denied }, []string{"0s: AccessDeniedException"}},
		"nobody may make a table": {func(a *account, _ *maketable.Options) {
			a.Table["TableName"], a.Refused["DynamoDB.CreateTable"] = "other", denied
		}, []string{
			"there is none",
			"1: " + create + ", deletion protection",
			"2: turn on TTL on exp_s",
			"3: turn on point-in-time recovery",
			`CreateTable {"DeletionProtectionEnabled":true,"SSESpecification":{"Enabled":true}}`,
			"0s: " + create + ", deletion protection: AccessDeniedException",
		}},
		"nobody may change it": {func(a *account, _ *maketable.Options) {
			a.Table["DeletionProtectionEnabled"], a.Refused["DynamoDB.UpdateTable"], a.Backups = false, denied, object{}
		}, []string{
			"1: turn on deletion protection",
			"2: turn on point-in-time recovery",
			`UpdateTable {"DeletionProtectionEnabled":true}`,
			"0s: turn on deletion protection: AccessDeniedException",
		}},
		"nobody may turn on TTL": {func(a *account, _ *maketable.Options) {
			a.TTL, a.Refused["DynamoDB.UpdateTimeToLive"] = object{}, denied
		}, []string{
			"1: turn on TTL on exp_s",
			ttl,
			"0s: turn on TTL on exp_s: AccessDeniedException",
		}},
		"nobody may turn on recovery": {func(a *account, _ *maketable.Options) {
			a.Backups, a.Refused["DynamoDB.UpdateContinuousBackups"] = object{}, denied
		}, []string{
			"1: turn on point-in-time recovery",
			recovery,
			"0s: turn on point-in-time recovery: AccessDeniedException",
		}},
		"a change that nobody waits for": {func(a *account, o *maketable.Options) {
			a.Table["DeletionProtectionEnabled"], a.slow, o.Patience = false, time.Hour, time.Minute
		}, []string{
			"1: turn on deletion protection",
			`UpdateTable {"DeletionProtectionEnabled":true}`,
			"1m0s: turn on deletion protection: it is still under way; run this again later: context deadline exceeded",
		}},
		"a change of 14 minutes": {func(a *account, _ *maketable.Options) {
			a.Table["DeletionProtectionEnabled"], a.slow = false, 14*time.Minute
		}, []string{"1: turn on deletion protection", `UpdateTable {"DeletionProtectionEnabled":true} done after 14m0.1s`}},
		"a table of a minute": {func(a *account, _ *maketable.Options) { a.Table["TableName"], a.slow = "other", time.Minute }, []string{
			"there is none",
			"1: " + create + ", deletion protection",
			"2: turn on TTL on exp_s",
			"3: turn on point-in-time recovery",
			`CreateTable {"DeletionProtectionEnabled":true,"SSESpecification":{"Enabled":true}} done after 1m0.1s`,
			ttl + " done after 1m0.1s",
			recovery + " done after 1m0.1s",
		}},
		"nobody may look again": {func(a *account, _ *maketable.Options) {
			a.Table["DeletionProtectionEnabled"] = false
			a.Other = func(string, object) (object, string) {
				a.Refused["DynamoDB.DescribeTable"] = denied
				return object{}, ""
			}
		}, []string{
			"1: turn on deletion protection",
			`UpdateTable {"DeletionProtectionEnabled":true}`,
			"0s: turn on deletion protection: AccessDeniedException",
		}},
		"a change of 16 minutes": {func(a *account, _ *maketable.Options) {
			a.Table["DeletionProtectionEnabled"], a.slow = false, 16*time.Minute
		}, []string{
			"1: turn on deletion protection",
			`UpdateTable {"DeletionProtectionEnabled":true}`,
			"15m0s: turn on deletion protection: it is still under way; run this again later: context deadline exceeded",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, opt := &account{World: doctortest.Good(time.Now())}, maketable.Options{Table: "records"}
				a.Other = func(string, object) (object, string) { return object{}, "" }
				tt.do(a, &opt)
				a.make(t.Context(), opt)
				if diff := cmp.Diff(tt.want, a.said); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// make makes a plan and runs it.
func (a *account) make(ctx context.Context, opt maketable.Options) {
	began := time.Now()
	say := func(format string, args ...any) { a.said = append(a.said, fmt.Sprintf(format, args...)) }
	p, err := maketable.Make(ctx, dynamodb.NewFromConfig(aws.Config{
		Region: "us-east-1", HTTPClient: a, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), RetryMaxAttempts: 1,
	}), opt)
	if err == nil {
		if !p.Exists {
			say("there is none")
		}
		for i, s := range p.Steps {
			say("%d: %s", i+1, s.What)
		}
		for _, n := range p.Never {
			say("never: %s", n)
		}
		err = p.Run(ctx, func(what string) {
			_, left, _ := strings.Cut(what, ": left out")
			a.said[len(a.said)-1] += fmt.Sprintf(" done after %v%s", time.Since(began), left)
		})
	}
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "operation error")
		if api, ok := errors.AsType[smithy.APIError](err); ok {
			text += api.ErrorCode()
		}
		say("%v: %s", time.Since(began), text)
	}
}
