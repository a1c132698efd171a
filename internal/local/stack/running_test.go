package stack

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func (s *running) url(key string) string { return s.line[key].(string) }

// do sends a request and returns the answer.
func (s *running) do(t *testing.T, method, url, body string, header ...string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "text/plain")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// eventually waits until what comes to pass without us has.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("it never came to pass: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
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
