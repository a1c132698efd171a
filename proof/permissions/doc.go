// Package permissions holds every call of the programs, and every key in it, to the
// policies that are deployed or printed: those of deploy/samekey.yaml, and the tables
// of docs/operate/background.md for functions of one's own. A call that a policy doesn't allow
// is refused, as AWS would.
package permissions
