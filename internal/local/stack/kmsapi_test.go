package stack

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/testkit/localtest"
)

// A data key is opened by its key in its context, also after a new start, and by no other.
func TestDataKeysAreOpened(t *testing.T) {
	t.Parallel()
	call := func(operation string, in kmsCall) (int, kmsAnswer, string) {
		srv := httptest.NewServer((&invokeAPI{}).handler())
		defer srv.Close()
		body, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		a := localtest.Send(t, http.MethodPost, srv.URL, string(body), "X-Amz-Target", "TrentService."+operation)
		var out kmsAnswer
		if err := json.Unmarshal([]byte(a.Body), &out); err != nil {
			t.Fatalf("%d %s: %v", a.Status, a.Body, err)
		}
		return a.Status, out, a.Header.Get("X-Amzn-Errortype") + a.Body
	}
	const key = "arn:aws:kms:us-east-1:123456789012:key/1"
	bound := map[string]string{"table": "records", "app": "shop"}
	status, made, body := call("GenerateDataKey", kmsCall{KeyID: key, EncryptionContext: bound})
	if status != http.StatusOK || len(made.Plaintext) != 32 || made.KeyID != key || bytes.Contains(made.CiphertextBlob, made.Plaintext) {
		t.Fatalf("%d %s", status, body)
	}
	for name, tt := range map[string]struct {
		in   kmsCall
		want int
	}{
		"the key":         {kmsCall{key, bound, made.CiphertextBlob}, http.StatusOK},
		"another key":     {kmsCall{key + "2", bound, made.CiphertextBlob}, http.StatusBadRequest},
		"another context": {kmsCall{key, map[string]string{"table": "other"}, made.CiphertextBlob}, http.StatusBadRequest},
	} {
		status, out, body := call("Decrypt", tt.in)
		if opened := status == http.StatusOK; status != tt.want || opened != bytes.Equal(out.Plaintext, made.Plaintext) || !opened && !strings.HasPrefix(body, "InvalidCiphertextException") {
			t.Errorf("%s: %d %s, want %d", name, status, body, tt.want)
		}
	}
	if status, _, body := call("Encrypt", kmsCall{KeyID: key}); status != http.StatusNotImplemented {
		t.Errorf("Encrypt: %d %s", status, body)
	}
}
