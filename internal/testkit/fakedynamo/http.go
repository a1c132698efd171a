package fakedynamo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/internal/testkit/itemjson"
)

// Server replaces the HTTP client of an SDK client. It applies requests to DB and answers in
// DynamoDB's JSON. It is safe for concurrent use.
type Server struct {
	DB DB

	mu sync.Mutex
}

// Locked calls fn while no request runs.
func (s *Server) Locked(fn func(*DB)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn(&s.DB)
}

// GetItem implements dynamo.API.
func (s *Server) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.DB.GetItem(ctx, in)
}

// PutItem implements dynamo.API.
func (s *Server) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.DB.PutItem(ctx, in)
}

// UpdateItem implements dynamo.API.
func (s *Server) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.DB.UpdateItem(ctx, in)
}

// TransactWriteItems implements dynamo.API.
func (s *Server) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.DB.TransactWriteItems(ctx, in)
}

// BatchGetItem implements dynamo.API.
func (s *Server) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.DB.BatchGetItem(ctx, in)
}

// BatchWriteItem implements dynamo.API.
func (s *Server) BatchWriteItem(ctx context.Context, in *dynamodb.BatchWriteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.DB.BatchWriteItem(ctx, in)
}

// Scan implements stream.ScanAPI.
func (s *Server) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.DB.Scan(ctx, in)
}

// Query implements stream.QueryAPI.
func (s *Server) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.DB.Query(ctx, in)
}

// The type request has the members of the requests of all operations. Do refuses other members.
type request struct {
	TableName, IndexName, Select, ReturnConsumedCapacity, ReturnValues, ReturnValuesOnConditionCheckFailure, ClientRequestToken string

	Key, Item, ExpressionAttributeValues, ExclusiveStartKey itemjson.Item
	ExpressionAttributeNames                                map[string]string

	ConditionExpression, UpdateExpression, FilterExpression, KeyConditionExpression, ProjectionExpression *string

	Limit, Segment, TotalSegments    *int32
	ConsistentRead, ScanIndexForward bool
	TransactItems                    []map[string]*request
	RequestItems                     map[string]json.RawMessage
}

// The type answer has the members of the answers of all operations.
type answer struct {
	Item             itemjson.Item              `json:",omitempty"`
	Attributes       itemjson.Item              `json:",omitempty"`
	Items            []itemjson.Item            `json:",omitempty"`
	Responses        map[string][]itemjson.Item `json:",omitempty"`
	LastEvaluatedKey itemjson.Item              `json:",omitempty"`
	Count            int32
	ScannedCount     int32

	Type                string               `json:"__type,omitempty"`
	Message             string               `json:"message,omitempty"`
	CancellationReasons []cancellationReason `json:",omitempty"`
}

type cancellationReason struct {
	Code    string
	Message string        `json:",omitempty"`
	Item    itemjson.Item `json:",omitempty"`
}

// Do implements aws.HTTPClient.
func (s *Server) Do(req *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var in request
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, err
	}
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	s.mu.Lock()
	out, err := s.answer(req.Context(), op, &in)
	s.mu.Unlock()
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadRequest
		if out = failed(err); out == nil {
			return nil, err
		}
	}
	body, err := json.Marshal(out)
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, err
}

// The function failed returns the answer for an error of the service, and nil for any other error.
func failed(err error) *answer {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return nil
	}
	out := &answer{Type: "com.amazonaws.dynamodb.v20120810#" + api.ErrorCode(), Message: api.ErrorMessage()}
	if e, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		out.Item = e.Item
	}
	if e, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, r := range e.CancellationReasons {
			one := cancellationReason{Code: *r.Code, Item: r.Item}
			if r.Message != nil {
				one.Message = *r.Message
			}
			out.CancellationReasons = append(out.CancellationReasons, one)
		}
	}
	return out
}

func (s *Server) answer(ctx context.Context, op string, in *request) (*answer, error) {
	db, out := &s.DB, &answer{}
	onFailure := types.ReturnValuesOnConditionCheckFailure(in.ReturnValuesOnConditionCheckFailure)
	switch op {
	case "GetItem":
		re, err := db.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &in.TableName, Key: in.Key, ProjectionExpression: in.ProjectionExpression, ExpressionAttributeNames: in.ExpressionAttributeNames,
		})
		if err != nil {
			return nil, err
		}
		out.Item = re.Item
	case "PutItem":
		_, err := db.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &in.TableName, Item: in.Item, ConditionExpression: in.ConditionExpression, ExpressionAttributeNames: in.ExpressionAttributeNames,
			ExpressionAttributeValues: in.ExpressionAttributeValues, ReturnValuesOnConditionCheckFailure: onFailure,
		})
		return out, err
	case "UpdateItem":
		re, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &in.TableName, Key: in.Key, UpdateExpression: in.UpdateExpression, ConditionExpression: in.ConditionExpression,
			ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
			ReturnValues: types.ReturnValue(in.ReturnValues), ReturnValuesOnConditionCheckFailure: onFailure,
		})
		if err != nil {
			return nil, err
		}
		out.Attributes = re.Attributes
	case "DeleteItem":
		_, err := db.one(write{
			table: &in.TableName, key: in.Key, remove: true, cond: in.ConditionExpression, names: in.ExpressionAttributeNames,
			values: in.ExpressionAttributeValues, allOld: onFailure == allOld,
		})
		return out, err
	case "TransactWriteItems":
		writes, err := in.writes()
		if err != nil {
			return nil, err
		}
		return out, db.all(writes)
	case "BatchGetItem":
		for table, raw := range in.RequestItems {
			var asked struct {
				Keys           []itemjson.Item
				ConsistentRead bool
			}
			if err := json.Unmarshal(raw, &asked); err != nil {
				return nil, err
			}
			keys := types.KeysAndAttributes{}
			for _, k := range asked.Keys {
				keys.Keys = append(keys.Keys, k)
			}
			re, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: keys}})
			if err != nil {
				return nil, err
			}
			out.Responses = map[string][]itemjson.Item{table: wire(re.Responses[table])}
		}
	case "BatchWriteItem":
		for table, raw := range in.RequestItems {
			var asked []struct {
				PutRequest    *struct{ Item itemjson.Item }
				DeleteRequest *struct{ Key itemjson.Item }
			}
			if err := json.Unmarshal(raw, &asked); err != nil {
				return nil, err
			}
			for _, w := range asked {
				one := write{table: &table}
				if w.PutRequest != nil {
					one.item = w.PutRequest.Item
				} else {
					one.key, one.remove = w.DeleteRequest.Key, true
				}
				if _, err := db.one(one); err != nil {
					return nil, err
				}
			}
		}
	case "Scan":
		re, err := db.Scan(ctx, &dynamodb.ScanInput{
			TableName: &in.TableName, FilterExpression: in.FilterExpression, ProjectionExpression: in.ProjectionExpression,
			ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
			Segment: in.Segment, TotalSegments: in.TotalSegments, Limit: in.Limit, ExclusiveStartKey: in.ExclusiveStartKey,
		})
		if err != nil {
			return nil, err
		}
		out.LastEvaluatedKey, out.Count, out.ScannedCount = re.LastEvaluatedKey, re.Count, re.ScannedCount
		out.Items = wire(re.Items)
	case "Query":
		re, err := db.Query(ctx, &dynamodb.QueryInput{
			TableName: &in.TableName, IndexName: &in.IndexName, KeyConditionExpression: in.KeyConditionExpression, FilterExpression: in.FilterExpression,
			ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
			Limit: in.Limit, ExclusiveStartKey: in.ExclusiveStartKey, Select: types.Select(in.Select),
		})
		if err != nil {
			return nil, err
		}
		out.LastEvaluatedKey, out.Count, out.ScannedCount = re.LastEvaluatedKey, re.Count, re.ScannedCount
		out.Items = wire(re.Items)
	default:
		return nil, invalid("this package has no " + op)
	}
	return out, nil
}

// request.writes converts the items of a TransactWriteItems request to the type write.
func (in *request) writes() ([]write, error) {
	all := make([]write, 0, len(in.TransactItems))
	for _, it := range in.TransactItems {
		for kind, w := range it {
			one := write{
				table: &w.TableName, cond: w.ConditionExpression, names: w.ExpressionAttributeNames, values: w.ExpressionAttributeValues,
				allOld: types.ReturnValuesOnConditionCheckFailure(w.ReturnValuesOnConditionCheckFailure) == allOld,
			}
			switch kind {
			case "Put":
				one.item = w.Item
			case "Update":
				one.key, one.update = w.Key, w.UpdateExpression
			case "Delete":
				one.key, one.remove = w.Key, true
			case "ConditionCheck":
				one.key = w.Key
			default:
				return nil, invalid("an unknown item of a transaction: " + kind)
			}
			all = append(all, one)
		}
	}
	return all, nil
}

func wire(items []Item) []itemjson.Item {
	all := make([]itemjson.Item, len(items))
	for i, it := range items {
		all[i] = it
	}
	return all
}
