package eventsource

import (
	"strings"
	"testing"
)

// The rules are those of Lambda's and EventBridge's documentation; cases marked
// AWS have been seen there with a real mapping.
func TestFilterRules(t *testing.T) {
	t.Parallel()
	const record = `{
		"eventName": "INSERT", "n": 100, "tenth": 0.1, "float": 300.0, "yes": true, "nothing": null, "empty": "", "list": ["a", "b", 3], "none": [],
		"people": [{"name": "ann", "age": 3}, {"name": "bob"}], "$or": "x",
		"dynamodb": {"NewImage": {"st": {"S": "open"}, "amount": {"N": "42"}, "map": {"M": {"inner": {"S": "x"}}}}}
	}`
	value, err := decodeJSON([]byte(record))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		pattern string
		want    bool
	}{
		{`{}`, true},
		{`{"eventName":["INSERT","MODIFY"]}`, true}, // AWS
		{`{"eventName":["MODIFY"]}`, false},
		{`{"eventName":["insert"]}`, false},
		{`{"eventName":["INSERT"],"n":[100]}`, true},
		{`{"nothing":[null]}`, true},
		{`{"missing":[null]}`, false},
		{`{"yes":[true]}`, true},
		{`{"yes":["true"]}`, false},
		// As they are written: 300 isn't 300.0.
		{`{"float":[300.0]}`, true},
		{`{"float":[300]}`, false},

		{`{"dynamodb":{"NewImage":{"st":{"S":["open"]}}}}`, true},
		{`{"dynamodb":{"NewImage":{"st":["open"]}}}`, false}, // AWS: no leaf
		{`{"dynamodb":{"NewImage":{"other":{"S":["open"]}}}}`, false},

		{`{"eventName":[{"exists":true}]}`, true},
		{`{"eventName":[{"exists":false}]}`, false},
		{`{"missing":[{"exists":true}]}`, false},
		{`{"missing":[{"exists":false}]}`, true},
		{`{"nothing":[{"exists":true}]}`, true},
		{`{"dynamodb":{"OldImage":{"st":{"S":[{"exists":false}]}}}}`, true},
		{`{"dynamodb":{"NewImage":{"st":[{"exists":true}]}}}`, false}, // AWS: leaves only
		{`{"dynamodb":{"NewImage":{"st":[{"exists":false}]}}}`, true}, // AWS
		{`{"none":[{"exists":false}]}`, true},
		{`{"eventName":{"below":[{"exists":false}]}}`, true},

		{`{"eventName":[{"prefix":"INS"}]}`, true},
		{`{"eventName":[{"prefix":"ins"}]}`, false},
		{`{"n":[{"prefix":"1"}]}`, false},
		{`{"eventName":[{"suffix":"ERT"}]}`, true},
		{`{"eventName":[{"equals-ignore-case":"insert"}]}`, true},

		{`{"eventName":[{"anything-but":"MODIFY"}]}`, true},
		{`{"eventName":[{"anything-but":["MODIFY","REMOVE"]}]}`, true},
		{`{"eventName":[{"anything-but":["MODIFY","INSERT"]}]}`, false},
		{`{"missing":[{"anything-but":"x"}]}`, false},
		{`{"n":[{"anything-but":100}]}`, false},

		{`{"n":[{"numeric":["=",100]}]}`, true},
		{`{"n":[{"numeric":[">",99,"<=",100]}]}`, true},
		{`{"n":[{"numeric":[">",100]}]}`, false},
		{`{"n":[{"numeric":[">=",100]}]}`, true},
		{`{"tenth":[{"numeric":["=",0.1]}]}`, true},
		{`{"eventName":[{"numeric":["=",0]}]}`, false},
		// DynamoDB's numbers are strings.
		{`{"dynamodb":{"NewImage":{"amount":{"N":[{"numeric":[">",0]}]}}}}`, false},                                 // AWS
		{`{"dynamodb":{"NewImage":{"amount":{"N":[{"numeric":[">",100]},{"anything-but":"101"}]}}}}`, true},         // AWS
		{`{"dynamodb":{"NewImage":{"amount":{"N":[{"numeric":[">",100]},{"anything-but":["42","101"]}]}}}}`, false}, // AWS
		{`{"dynamodb":{"NewImage":{"map":{"M":{"inner":{"S":["x"]}}}}}}`, true},

		{`{"list":["b"]}`, true},
		{`{"list":[{"anything-but":"a"}]}`, true},
		{`{"list":[{"numeric":["=",3]}]}`, true},
		{`{"people":{"name":["bob"]}}`, true},
		{`{"people":{"name":["bob"],"age":[3]}}`, false}, // not of one person
		{`{"people":{"name":["ann"],"age":[3]}}`, true},

		{`{"$or":[{"eventName":["MODIFY"]},{"n":[100]}]}`, true},
		{`{"$or":[{"eventName":["MODIFY"]},{"n":[101]}]}`, false},
		{`{"eventName":["INSERT"],"$or":[{"n":[1]},{"yes":[true]}]}`, true},
		{`{"eventName":["MODIFY"],"$or":[{"n":[100]},{"yes":[true]}]}`, false},
		{`{"dynamodb":{"NewImage":{"$or":[{"st":{"S":["done"]}},{"amount":{"N":["42"]}}]}}}`, true},
	} {
		f, err := parseFilters([]string{tt.pattern})
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		if got := f.match(value); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.pattern, got, tt.want)
		}
	}
}

func TestFiltersThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, row := range [][2]string{
		{`[{"eventName": ["INSERT"=123}]`, "not JSON"},
		{`{"a":["x"]} {}`, "more than one"},
		{`["INSERT"]`, "not an object"},
		{`single-string`, "not JSON"},
		{`{"a":"x"}`, "a: needs an array of values or an object"},
		{`{"a":[]}`, "matches nothing"},
		{`{"a":[["x"]]}`, "not an array"},
		{`{"a":[{}]}`, "one operator"},
		{`{"a":[{"wildcard":"x*"}]}`, "wildcard: unknown operator"},
		{`{"a":[{"prefix":1}]}`, "prefix: takes a string"},
		{`{"a":[{"exists":"true"}]}`, "exists: takes true or false"},
		{`{"a":[{"anything-but":{"prefix":"x"}}]}`, "anything-but: takes strings and numbers"},
		{`{"a":[{"numeric":[">"]}]}`, "one or two pairs"},
		{`{"a":[{"numeric":["!=",5]}]}`, "!= 5 is not a comparison"},
		{`{"a":[{"numeric":[">",1,">",2]}]}`, "one lower and one upper"},
		{`{"a":[{"numeric":["=",1e999999999]}]}`, "not a comparison"},
		{`{"$or":[{"a":["x"]}]}`, "two patterns or more"},
		{`{"$or":[{"a":["x"]},"y"]}`, "objects only"},
	} {
		pattern, want := row[0], row[1]
		if _, err := parseFilters([]string{pattern}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", pattern, err, want)
		}
	}
}

// What Lambda's documentation says on bodies that are JSON, or aren't.
func TestFiltersOnAQueuesBody(t *testing.T) {
	t.Parallel()
	const inJSON, plain = `{"body":{"code":["BBBB"]}}`, `{"body":["hello"]}`
	for _, tt := range []struct {
		pattern, body string
		want          bool
	}{
		{inJSON, `{"code":"BBBB"}`, true},
		{inJSON, `{"code":"AAAA"}`, false},
		{inJSON, `BBBB`, false},
		{inJSON, ``, false},
		{plain, `hello`, true},
		{plain, `other`, false},
		{plain, `{"hello":1}`, false},
		{`{"body":["123"]}`, `123`, false}, // that is JSON
		{`{"body":[{"prefix":"{"}]}`, `{"hello":1}`, false},
		{`{"body":[{"prefix":"{"}]}`, `{hello`, true},
		{`{"eventSource":["aws:sqs"]}`, `hello`, true},
		{`{"eventSource":["aws:sqs"]}`, `{"code":1}`, true},
		{`{"eventSource":["other"]}`, `hello`, false},
		{`{"attributes":{"MessageGroupId":["g"]}}`, `x`, true},
	} {
		f, err := parseFilters([]string{`{"messageId":["never"]}`, tt.pattern})
		if err != nil {
			t.Fatal(err)
		}
		m := message{body: tt.body, json: marshal(messageJSON{Body: tt.body, EventSource: "aws:sqs", Attributes: map[string]string{"MessageGroupId": "g"}})}
		if got := f.wants(m); got != tt.want {
			t.Errorf("%s, body %s: got %v", tt.pattern, tt.body, got)
		}
	}
	// Each pattern sees the body in its own way.
	f, err := parseFilters([]string{inJSON, plain})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]bool{`{"code":"BBBB"}`: true, `hello`: true, `other`: false} {
		if got := f.wants(message{body: body, json: marshal(messageJSON{Body: body})}); got != want {
			t.Errorf("both, body %s: got %v", body, got)
		}
	}
}

func TestSequenceNumbersCompareAsNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"10", "9", true},
		{"9", "10", false},
		{"100000000000000000000000000000000000000", "99999999999999999999999999999999999999", true},
		{"000000000000000000010", "9", true},
		{"7", "7", false},
		{"007", "7", false},
	} {
		if got := later(tt.a, tt.b); got != tt.want {
			t.Errorf("later(%s, %s) = %v", tt.a, tt.b, got)
		}
	}
}
