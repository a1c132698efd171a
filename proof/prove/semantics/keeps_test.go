package semantics

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

// each are the lines once for each value, which # stands for.
func each(values []string, lines ...string) (all []string) {
	for _, v := range values {
		for _, line := range lines {
			all = append(all, strings.ReplaceAll(line, "#", v))
		}
	}
	return all
}

func upTo(n int) (all []string) {
	for i := range n {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

const (
	ifFresh  = " if attribute_not_exists(pk)"
	counted  = "update a [:one:1] SET n = n + :one"
	iterator = "TRIM_HORIZON of # of the arn of table"
)

// examination is what an assumption costs, asks for and says when it is kept.
type examination struct {
	Name          string
	Writes, Reads int
	Outcome       string
	Sent          []string // but not the looks at the stream
}

func examinations() []examination {
	hundred := strings.Join(each(upTo(100), "put i#"), ", ")
	var races []string
	for _, round := range upTo(8) {
		races = append(races, each(upTo(16), "put race"+round+" [holder:#]"+ifFresh)...)
	}
	turn := append(each(strings.Fields("1 2 3 5 6 7 9 10 11"), "transact "+counted+", put w#"), counted, counted, counted)
	return []examination{
		{"refused-put-has-item", 10, 0, "holds", []string{"put a [holder:first jobs:map[0:job] ver:7]", "put a [holder:second]" + ifFresh}},
		{"refused-update-has-item", 20, 2, "holds", slices.Concat(
			[]string{"put a [holder:first]"}, each([]string{"a", "none"}, "update # [:holder:second :one:1] SET ver = :one if holder = :holder"), []string{"get none"})},
		{"one-winner", 400, 0, "holds 8 races of 16", races},
		{"absent-compares-false", 30, 0, "holds", append([]string{"put a [ver:1]"}, slices.Concat(
			each([]string{"", "NOT "}, "update a [:now:2000000000 :w:1] SET written = :w if #exp_s < :now"),
			each([]string{"", "NOT "}, "update a [:freed:freed :w:1] SET written = :w if #keep = :freed"))...)},
		{"paths-of-maps", 30, 0, "holds", []string{
			"put with [req:map[m:POST]]", "put without",
			"update with [:w:1] SET written = :w if attribute_exists(req.m) AND attribute_not_exists(req.o)",
			"update with [:w:1] SET written = :w if attribute_exists(req.o)",
			"update without [:w:1] SET written = :w if attribute_exists(req.m)",
			"update without [:w:1] SET written = :w if attribute_not_exists(req.m)",
		}},
		{"size-counts-entries", 20, 0, "holds", []string{
			"put a [jobs:map[0:job 1:job] settled:*types.AttributeValueMemberL]",
			"update a [:n:2 :w:1] SET written = :w if size(jobs) = :n", "update a [:n:3 :w:1] SET written = :w if size(settled) = :n",
		}},
		{"update-reads-before-it-writes", 10, 0, "holds", []string{
			"put a [created_ms:1 run_ms:5]",
			"update a [:now:9 :one:1 :zero:0] SET run_ms = :now, doubt_ms = if_not_exists(run_ms, created_ms), tries = if_not_exists(tries, :zero) + :one",
		}},
		{"entries-apart", 20, 0, "holds", []string{
			"put a [jobs:map[x:1 y:1 z:1]]", "update a [:two:2] SET jobs.y = :two REMOVE jobs.x, jobs.nothing if attribute_exists(jobs)",
			"put b", "update b [:two:2] SET jobs.y = :two",
		}},
		{"consistent-reads", 150, 60, "holds 50 reads", each(upTo(50), "put a [ver:#]", "get a")},
		{"transaction-all-or-none", 60, 6, "holds", []string{
			"put there", "transact put a, put there" + ifFresh + ", put b", "get a", "get b",
			"transact put a" + ifFresh + ", put b" + ifFresh, "get a", "get b",
		}},
		{"cancelled-has-items", 40, 0, "holds", []string{
			"put b [holder:first ver:3]", "transact put a" + ifFresh + ", put b" + ifFresh + ", put c" + ifFresh,
		}},
		{"token-repeats", 30, 6, "holds", []string{"put a [n:0]", "transact " + counted, "transact " + counted, "get a"}},
		{"token-of-another", 30, 0, "holds", []string{"transact put a", "transact put b"}},
		{"conflicts", 2500, 20, "holds 45 transactions and 15 writes of 180 met one", slices.Concat([]string{"put a [n:0]"}, slices.Repeat(turn, 15), []string{"get a"})},
		{"hundred-items", 1500, 0, "holds", []string{"transact " + hundred, "transact " + hundred + ", put i100", "transact put i0, put i0"}},
		{"item-size", 1000, 0, "holds", []string{"put a [body:409600]", "put a [body:409601]", "update a [:one:1] SET b = :one"}},
		{"transaction-size", 9000, 0, "holds", []string{"transact " + strings.Join(each(upTo(11), "put part# [body:381301]"), ", ")}},
		{"units-of-writes", 20, 0, "holds", []string{"put a [body:1024]", "put b [body:3600]"}},
		{"units-of-transactions", 30, 0, "holds", []string{"transact put a, put b"}},
		{"sparse-index", 20, 240, "holds there after 0 ms", []string{"put a [wait_ms:1 waits:]", "put b", "query waiting", "update a REMOVE waits, wait_ms", "query waiting"}},
		{"stream-order", 150, 0, "holds 40 changes", slices.Concat(each(upTo(40), "put a [ver:#]"), []string{"DescribeTableInput"}, each([]string{"early", "late"}, iterator))},
		{"stream-of-changes-only", 80, 0, "holds", slices.Concat(
			[]string{"transact put a [ver:1], put b [ver:1]", "put a [ver:1]", "transact put a [ver:9], put b" + ifFresh, "put a [ver:2]", "put b [ver:2]"},
			[]string{"DescribeTableInput"}, each([]string{"early"}, iterator), []string{"DescribeTableInput"}, each([]string{"early", "late"}, iterator))},
	}
}

var number = regexp.MustCompile(`\d+`)

// atOnce are the assumptions whose requests have no order.
var atOnce = []string{"one-winner", "conflicts"}

// conflicting has each third write of its kind meet a conflict, for the assumption that there are some.
func conflicting(a Assumption) fault {
	if a.Name != "conflicts" {
		return kept
	}
	transactions, writes := 0, 0
	return func(k *keeper, in any, answer fault) (any, error) {
		switch in.(type) {
		case *dynamodb.TransactWriteItemsInput:
			if transactions++; transactions%3 == 0 {
				return nil, cancelledBy("TransactionConflict", "None")
			}
		case *dynamodb.UpdateItemInput:
			if writes++; writes%3 == 0 {
				return nil, &types.TransactionConflictException{}
			}
		}
		return answer(k, in, nil)
	}
}

func cancelledBy(codes ...string) error {
	err := &types.TransactionCanceledException{}
	for _, code := range codes {
		err.CancellationReasons = append(err.CancellationReasons, types.CancellationReason{Code: &code})
	}
	return err
}

// Each assumption asks for no more than it says, and holds where it is kept.
func TestKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []examination
		for _, a := range All() {
			k := &keeper{fault: conflicting(a)}
			figure, err := a.Examine(t.Context(), k.place())
			if form := number.ReplaceAllString(figure, "#"); form != a.Figure {
				t.Errorf("%s: the figure is %s, not %s", a.Name, form, a.Figure)
			}
			k.sent = slices.DeleteFunc(k.sent, func(s string) bool { return strings.HasPrefix(s, "shards ") || strings.HasPrefix(s, "records ") })
			got = append(got, examination{a.Name, a.Writes, a.Reads, outcome(figure, err), k.sent})
		}
		expected := examinations()
		for i, e := range expected {
			if slices.Contains(atOnce, e.Name) {
				slices.Sort(e.Sent)
				slices.Sort(got[i].Sent)
			}
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Error(diff)
		}
	})
}
