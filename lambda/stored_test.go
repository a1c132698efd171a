package lambda_test

import (
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// Failures inside of a 200 are stored by no policy of their protocol.
func TestPoliciesOfProtocols(t *testing.T) {
	t.Parallel()
	const jsonRPC, mcp, graphQL = 1, 2, 4 // who stores the answer
	for body, want := range map[string]int{
		`{"jsonrpc":"2.0","id":1,"result":{}}`:                                  jsonRPC + mcp + graphQL,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32603}}`:                      graphQL,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":null}`:                     jsonRPC + mcp + graphQL,
		`{"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}`:       jsonRPC + graphQL,
		`{"content":[],"isError": true}`:                                        jsonRPC + graphQL,
		`{"content":[],"isError":false}`:                                        jsonRPC + mcp + graphQL,
		`{"data":{"pay":{"id":"p"}}}`:                                           jsonRPC + mcp + graphQL,
		`{"data":null,"errors":[{"message":"down"}]}`:                           jsonRPC + mcp,
		`{"errors":[{"message":"down"}]}`:                                       jsonRPC + mcp,
		`{"data":{"pay":null},"errors":[{"message":"down"}]}`:                   jsonRPC + mcp,
		`{"data":{"pay":{"id":"p"},"mail":null},"errors":[{"message":"down"}]}`: jsonRPC + mcp + graphQL,
		`{"data":{"pay":{"id":"p"}},"errors":[ ]}`:                              jsonRPC + mcp + graphQL,
		`{"data":null,"errorMessage":"down","errorType":"Timeout"}`:             jsonRPC + mcp,
		`"errors"`: jsonRPC + mcp + graphQL,
		``:         jsonRPC + mcp + graphQL,
	} {
		got := 0
		for bit, policy := range map[int]func(idem.Response) bool{jsonRPC: lambda.JSONRPCStored, mcp: lambda.MCPToolStored, graphQL: lambda.GraphQLStored} {
			if policy(idem.Response{Status: 200, Body: []byte(body)}) {
				got += bit
			}
			if policy(idem.Response{Status: 500, Body: []byte(body)}) {
				t.Errorf("%s: a 500 is stored", body)
			}
		}
		if got != want {
			t.Errorf("%s: stored by %03b, want %03b", body, got, want)
		}
	}
}
