package stack

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/testkit/localtest"
)

func (s *running) url(key string) string { return s.line[key].(string) }

// do sends a request and returns the answer.
func (s *running) do(t *testing.T, method, url, body string, header ...string) (status int, answer string) {
	t.Helper()
	a := localtest.Send(t, method, url, body, append([]string{"Content-Type", "text/plain"}, header...)...)
	return a.Status, a.Body
}

// item returns an item's value, "" if it isn't there.
func (s *running) item(t *testing.T, pk string) string {
	t.Helper()
	out, err := s.db.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: new(s.url("table")), Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}},
	})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := out.Item["value"].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

func (s *running) create(t *testing.T, name string) {
	t.Helper()
	if status, body := s.do(t, http.MethodPost, s.url("api")+"/items", name, "Authorization", "Bearer user-1"); status != http.StatusCreated || body != "user-1" {
		t.Fatalf("status %d: %s", status, body)
	}
}

func (s *running) state(t *testing.T, name string) FunctionState {
	t.Helper()
	_, body := s.do(t, http.MethodGet, s.url("control")+"/functions", "")
	var all []FunctionState
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("there is no %s in %s", name, body)
	return FunctionState{}
}

func (s *running) failures(t *testing.T) []Failed {
	t.Helper()
	_, body := s.do(t, http.MethodGet, s.url("control")+"/failed", "")
	var all []Failed
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatal(err)
	}
	return all
}
