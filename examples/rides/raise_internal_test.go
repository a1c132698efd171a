package rides

import "testing"

func TestWithoutMember(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, object, want string }{
		{"last", `{"a":1,"raise_error":"x"}`, `{"a":1}`},
		{"first, spaced", `{ "raise_error" : "x" , "a": 1 }`, `{ "a": 1 }`},
		{"in the middle", `{"a":1,"raise_error":"x","b":2}`, `{"a":1,"b":2}`},
		{"alone", `{"raise_error":"x"}`, `{}`},
		{"of any type", `{"a":1,"raise_error":{"b":[1,2]}}`, `{"a":1}`},
		{"escaped name", `{"a":1,"raise\u005ferror":"x"}`, `{"a":1}`},
		{"not there", `{ "a" : 1 }`, `{ "a" : 1 }`},
		{"further down", `{"a":{"raise_error":"x"}}`, `{"a":{"raise_error":"x"}}`},
		{"broken", `{"a":1,"raise_error"`, `{"a":1,"raise_error"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := withoutMember(tc.object, "raise_error"); got != tc.want {
				t.Errorf("%s without raise_error: got %s, want %s", tc.object, got, tc.want)
			}
		})
	}
}

func TestWithoutParameter(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                      "",
		"raise_error=x":         "",
		"a=1&raise_error=x":     "a=1",
		"raise_error=x&a=1":     "a=1",
		"a=1&raise_error=x&b=2": "a=1&b=2",
		"a=raise_error=x":       "a=raise_error=x",
		"my_raise_error=x":      "my_raise_error=x",
	} {
		if got := withoutParameter(query, "raise_error"); got != want {
			t.Errorf("%s without raise_error: got %q, want %q", query, got, want)
		}
	}
}
