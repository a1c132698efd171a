package tenants_test

import (
	"testing"
	"testing/synctest"
)

// Names and keys that would be equal if their parts were joined without care.
func TestJoinedNames(t *testing.T) {
	t.Parallel()
	pairs := [][2]caller{
		{{kind: "jwt", a: "a", b: "b|c"}, {kind: "jwt", a: "a|b", b: "c"}},
		{{kind: "jwt", a: "a%7Cb", b: "c"}, {kind: "jwt", a: "a|b", b: "c"}},
		{{tenant: "t", kind: "jwt", a: "x", b: "y"}, {tenant: "t|jwt:x", kind: "jwt", a: "", b: "y"}},
		{{tenant: "t", kind: "lambda", b: "x"}, {kind: "lambda", b: "t|lambda:x"}},
		{{kind: "lambda", a: "api|x", b: "y"}, {kind: "lambda", a: "api", b: "x|y"}},
		{{kind: "cert", a: "CN=a|CN=b", b: "c"}, {kind: "cert", a: "CN=a", b: "CN=b|c"}},
		{{kind: "lambda", b: "a"}, {kind: "lambda", b: "ab"}},
		{{kind: "lambda", b: "a"}, {kind: "apikey", b: "a"}},
		{{kind: "jwt", a: "arn:aws:iam:", b: "x"}, {kind: "iam", b: "arn:aws:iam:|x"}},
		{{kind: "sqs", a: "arn:aws:sqs:r:1:q"}, {kind: "lambda", b: "arn:aws:sqs:r:1:q"}},
	}
	keys := []string{"bk", "k", "b|k", "|k"}
	synctest.Test(t, func(t *testing.T) {
		c := tally{answers: make(map[string]int)}
		for _, pair := range pairs {
			s := &script{callers: pair[:]}
			for _, key := range keys {
				for who := range pair {
					r := &request{index: len(s.all), who: who, key: key, door: doorsOf[pair[who].kind][0]}
					s.all, s.roots = append(s.all, r), append(s.roots, r)
				}
			}
			w := newWorld(s, memoryStore(), worldsBegin, inMemory(planted{}), nil)
			w.play(t.Context())
			c.judge(t.Context(), s, w, inMemory(planted{}), true)
		}
		for _, leak := range c.leaks {
			t.Error(leak)
		}
	})
}
