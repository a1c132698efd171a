// Package prove examines Samekey where it runs: it deploys a throw-away stack, holds each
// claim against it, writes a report, and removes all that it made. A place is an AWS account
// ([Account]) or this machine ([Machine]), which stands in for one. docs/operate/prove.md is
// its manual.
package prove
