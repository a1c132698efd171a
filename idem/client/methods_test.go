package client_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
)

// Both halves key the same methods by default. Of a method that only the client
// keys, an answer that is lost runs the handler again.
func TestBothHalvesKeyTheSameMethods(t *testing.T) {
	t.Parallel()
	engine := idem.New(new(idem.MemoryStore), idem.OneScope)
	for _, method := range []string{"POST", "PATCH", "PUT", "DELETE"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{answer(201)}}
				status(t, client.New(s), request(t, method, "x"))
				theirs := s.attempts()[0].Key != ""
				if ours := engine.Acts(method, http.Header{idem.KeyHeader: {"k"}}); ours != theirs || ours != (method == "POST" || method == "PATCH") {
					t.Errorf("the engine keys it: %t, the client: %t", ours, theirs)
				}
			})
		})
	}
}
