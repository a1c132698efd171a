// Package bench counts what each path of a request takes (calls, units, bytes), plays the scenarios that
// break Powertools, and measures times by go test -bench:
//
//	go test -C proof ./bench -update                 # results.json, and the tables of README.md
//	go test -C proof -run '^$' -bench . ./bench      # a new request and a replay, beside the same calls by the SDK alone
//	make bench-peers                                 # peers.json, by Powertools for Python and TypeScript
package bench
