package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/scope"
)

func tableChecks() []Check {
	table := []Source{DescribeTable}
	return []Check{
		{
			ID: "table-key", Severity: Error, Needs: table, find: tableKey,
			Looks:  "the table has the partition key `pk`, a string, and no sort key",
			Causes: "DynamoDB refuses every claim, so no request with a key is served",
			Mend:   "a table's key can't be changed: make a new table with AttributeDefinitions and KeySchema from samekey.yaml (samekey stack writes the file), and deploy with the new table",
		},
		{
			ID: "table-status", Severity: Error, Needs: table, find: tableStatus,
			Looks:  "the table is active, and its KMS key is accessible",
			Causes: "no request with a key is served",
			Mend:   "enable the KMS key, or allow DynamoDB to use it. If DynamoDB can't use the key for 7 days, it archives the table",
		},
		{
			ID: "table-replicas", Severity: Warning, Needs: table, find: tableReplicas,
			Looks:  "the table has no replica in another Region",
			Causes: "two Regions may run the same request, and the workers of both Regions do the same work. If the replicas have strong consistency, phases fail, because such a table has no transactions",
			Mend:   "let only one Region write to the table (docs/operate/deploying.md)",
		},
		{
			ID: "table-capacity", Severity: Warning, Needs: table, find: tableCapacity,
			Looks:  "the table and its index each have more than 5 write units a second",
			Causes: "a new request takes 2 write units, so DynamoDB throttles the table at a few new requests a second, and clients get 503",
			Mend:   "BillingMode: PAY_PER_REQUEST; or aws dynamodb update-table --billing-mode PAY_PER_REQUEST --table-name TABLE",
		},
		{
			ID: "table-indexes", Severity: Error, Needs: table, find: tableIndexes,
			Looks:  "the table's indexes are active and are those of the template, with the same keys and projection",
			Causes: "the list of waiting operations is missing or incomplete",
			Mend:   "copy AttributeDefinitions and GlobalSecondaryIndexes of the resource Table from samekey.yaml (samekey stack --update writes the newest file)",
		},
		{
			ID: "ttl-attribute", Severity: Error, Needs: []Source{DescribeTTL}, find: ttlAttribute,
			Looks:  "TTL is off, or the TTL attribute is `exp_s`",
			Causes: "DynamoDB deletes records too early, or never. If a record is deleted too early, a retry runs as a new request",
			Mend:   "TimeToLiveSpecification: {AttributeName: exp_s, Enabled: true}; by hand: turn TTL off, wait an hour, turn it on for exp_s",
		},
		{
			ID: "ttl-off", Severity: Warning, Needs: []Source{DescribeTTL}, find: ttlOff,
			Looks:  "TTL is on",
			Causes: "expired records are never deleted: they take storage, and every scan reads them. But their keys can be used again",
			Mend:   "TimeToLiveSpecification: {AttributeName: exp_s, Enabled: true}; or aws dynamodb update-time-to-live --time-to-live-specification AttributeName=exp_s,Enabled=true --table-name TABLE",
		},
		{
			ID: "ttl-unit", Severity: Error, Needs: []Source{ScanTable}, find: ttlUnit,
			Looks:  "`exp_s` is in epoch seconds in all items of the sample",
			Causes: "a time in milliseconds, read as seconds, is 50,000 years ahead. So the key never expires, and a new request with the key gets the old answer",
			Mend:   "find what else writes to the table, and correct exp_s in the items that have a wrong time",
		},
		{
			ID: "layout", Severity: Error, Needs: []Source{ScanTable}, find: layout,
			Looks:  "this version of samekey can read the sample's items",
			Causes: "a request whose record can't be read gets 500 (record_corrupt), and its operation is never completed",
			Mend:   "deploy the version of Samekey that wrote the unreadable items, or find what else writes to the table (docs/operate/item.md)",
		},
		{
			ID: "one-scope", Severity: Warning, Needs: []Source{ScanTable}, find: oneScope,
			Looks:  "each record in the sample names its caller (encrypted scopes are skipped)",
			Causes: "with idem.OneScope, anybody who sends another caller's key and request gets that caller's answer",
			Mend:   "use an authorizer or o.Scope for routes that aren't public",
		},
		{
			ID: "recovery", Severity: Warning, Needs: []Source{DescribeBackup}, find: recovery,
			Looks:  "point-in-time recovery is on",
			Causes: "records that are deleted by mistake can't be restored, so retries of their requests run as new requests",
			Mend:   "PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}",
		},
		{
			ID: "protection", Severity: Note, Needs: table, find: protection,
			Looks:  "deletion protection is on",
			Causes: "the table can be deleted by mistake, and then every retry runs as a new request",
			Mend:   "set the parameter DeletionProtection=true; or aws dynamodb update-table --deletion-protection-enabled --table-name TABLE",
		},
	}
}

func (f *Facts) atTable(format string, args ...any) wrong {
	return wrong{where: "table " + f.Options.Table, what: fmt.Sprintf(format, args...)}
}

func tableKey(f *Facts) ([]wrong, string) {
	want := dynamo.CreateTableInput(f.Options.Table)
	if keys(f.Table.KeySchema) == keys(want.KeySchema) && typed(f.Table.AttributeDefinitions, "pk") == types.ScalarAttributeTypeS {
		return found()
	}
	return found(f.atTable("its key is %s", keysTyped(f.Table.KeySchema, f.Table.AttributeDefinitions)))
}

func keys(schema []types.KeySchemaElement) string {
	all := make([]string, 0, len(schema))
	for _, k := range schema {
		all = append(all, aws.ToString(k.AttributeName)+" "+string(k.KeyType))
	}
	return strings.Join(all, ", ")
}

func keysTyped(schema []types.KeySchemaElement, defs []types.AttributeDefinition) string {
	all := make([]string, 0, len(schema))
	for _, k := range schema {
		name := aws.ToString(k.AttributeName)
		all = append(all, fmt.Sprintf("%s %s (%s)", name, k.KeyType, typed(defs, name)))
	}
	return strings.Join(all, ", ")
}

func typed(defs []types.AttributeDefinition, name string) types.ScalarAttributeType {
	for _, d := range defs {
		if aws.ToString(d.AttributeName) == name {
			return d.AttributeType
		}
	}
	return ""
}

func tableCapacity(f *Facts) ([]wrong, string) {
	var all []wrong
	b := f.Table.BillingModeSummary
	onDemand := b != nil && b.BillingMode == types.BillingModePayPerRequest
	look := func(of string, p *types.ProvisionedThroughputDescription, most *types.OnDemandThroughput) {
		units := int64(0) // 0 means on-demand capacity without a limit
		switch {
		case onDemand && most != nil:
			units = aws.ToInt64(most.MaxWriteRequestUnits)
		case !onDemand && p != nil:
			units = aws.ToInt64(p.WriteCapacityUnits)
		}
		if units > 0 && units <= 5 {
			all = append(all, f.atTable("%s may write %d units a second", of, units))
		}
	}
	look("it", f.Table.ProvisionedThroughput, f.Table.OnDemandThroughput)
	for _, g := range f.Table.GlobalSecondaryIndexes {
		look("its index "+aws.ToString(g.IndexName), g.ProvisionedThroughput, g.OnDemandThroughput)
	}
	return all, ""
}

func tableStatus(f *Facts) ([]wrong, string) {
	if e := f.Table.SSEDescription; e != nil && e.InaccessibleEncryptionDateTime != nil {
		return found(f.atTable("it has had no access to its KMS key since %s", e.InaccessibleEncryptionDateTime.UTC().Format(time.RFC3339)))
	}
	switch s := f.Table.TableStatus; s {
	case types.TableStatusActive, types.TableStatusUpdating, "":
		return found()
	default:
		return found(f.atTable("it is %s", s))
	}
}

func tableReplicas(f *Facts) ([]wrong, string) {
	others := make([]string, 0, len(f.Table.Replicas))
	for _, r := range f.Table.Replicas {
		others = append(others, aws.ToString(r.RegionName))
	}
	if len(others) == 0 {
		return found()
	}
	consistency := cmp.Or(f.Table.MultiRegionConsistency, types.MultiRegionConsistencyEventual)
	return found(f.atTable("it has replicas with %s consistency: %s", strings.ToLower(string(consistency)), strings.Join(others, ", ")))
}

func tableIndexes(f *Facts) ([]wrong, string) {
	var all []wrong
	want := dynamo.CreateTableInput(f.Options.Table)
	for _, w := range want.GlobalSecondaryIndexes {
		name := aws.ToString(w.IndexName)
		i := slices.IndexFunc(f.Table.GlobalSecondaryIndexes, func(g types.GlobalSecondaryIndexDescription) bool { return aws.ToString(g.IndexName) == name })
		if i < 0 {
			all = append(all, f.atTable("the index %s is missing", name))
			continue
		}
		got := f.Table.GlobalSecondaryIndexes[i]
		switch {
		case keys(got.KeySchema) != keys(w.KeySchema):
			all = append(all, f.atTable("the key of the index %s is %s, and should be %s", name, keys(got.KeySchema), keys(w.KeySchema)))
		case projected(got.Projection) != projected(w.Projection):
			all = append(all, f.atTable("the index %s projects %s, and should project %s", name, projected(got.Projection), projected(w.Projection)))
		case got.IndexStatus != types.IndexStatusActive && got.IndexStatus != "": // some emulators return no status
			all = append(all, f.atTable("the index %s is %s", name, got.IndexStatus))
		}
	}
	for _, g := range f.Table.GlobalSecondaryIndexes {
		if !slices.ContainsFunc(want.GlobalSecondaryIndexes, func(w types.GlobalSecondaryIndex) bool { return aws.ToString(w.IndexName) == aws.ToString(g.IndexName) }) {
			w := f.atTable("the template has no index %s", aws.ToString(g.IndexName))
			w.severity, w.causes, w.mend = Warning, "every write costs twice as much, and a hot partition of the index throttles the table", "if you don't need the index, delete it"
			all = append(all, w)
		}
	}
	return all, ""
}

func projected(p *types.Projection) string {
	if p == nil {
		return "nothing"
	}
	names := slices.Sorted(slices.Values(p.NonKeyAttributes))
	return strings.TrimSpace(string(p.ProjectionType) + " " + strings.Join(names, " "))
}

func ttlOn(f *Facts) bool {
	return f.TTL != nil && (f.TTL.TimeToLiveStatus == types.TimeToLiveStatusEnabled || f.TTL.TimeToLiveStatus == types.TimeToLiveStatusEnabling)
}

func ttlName(f *Facts) string {
	if f.TTL == nil {
		return ""
	}
	return aws.ToString(f.TTL.AttributeName)
}

func ttlAttribute(f *Facts) ([]wrong, string) {
	if name := ttlName(f); ttlOn(f) && name != "exp_s" {
		return found(f.atTable("TTL is on %s", name))
	}
	return found()
}

func ttlOff(f *Facts) ([]wrong, string) {
	if ttlOn(f) {
		return found()
	}
	return found(f.atTable("TTL is off"))
}

func ttlUnit(f *Facts) ([]wrong, string) {
	if len(f.Sample) == 0 {
		return nil, "the sample has no record"
	}
	n, example := 0, ""
	for _, r := range f.Sample {
		if mistaken(r, f.Now) {
			n, example = n+1, strconv.FormatInt(r.Expires.Unix(), 10)
		}
	}
	if n == 0 {
		return found()
	}
	return found(f.atTable("%d of %d records have an exp_s that is not a time in seconds, for example %s", n, len(f.Sample), example))
}

// mistaken reports whether a record's exp_s can't be in seconds, because this time in
// seconds would be more than 20 years ahead.
func mistaken(r *store.Record, now time.Time) bool { return r.Expires.After(now.AddDate(20, 0, 0)) }

func layout(f *Facts) ([]wrong, string) {
	switch {
	case len(f.Unread) > 0:
		return found(f.atTable("%d of %d items can't be read: %s", len(f.Unread), len(f.Unread)+len(f.Sample), f.Unread[0]))
	case len(f.Sample) == 0:
		return nil, "the sample has no record"
	}
	return found()
}

func oneScope(f *Facts) ([]wrong, string) {
	shared := make(map[string]bool)
	for _, r := range f.Sample {
		if _, _, caller, ok := scope.Parse(r.Scope); ok && caller.Kind == scope.One {
			shared[r.Route] = true
		}
	}
	all := make([]wrong, 0, len(shared))
	for _, route := range slices.Sorted(maps.Keys(shared)) {
		all = append(all, f.atTable("all callers of %q share one scope (idem.OneScope)", route))
	}
	return all, ""
}

func recovery(f *Facts) ([]wrong, string) {
	if f.Recovery {
		return found()
	}
	return found(f.atTable("point-in-time recovery is off"))
}

func protection(f *Facts) ([]wrong, string) {
	if aws.ToBool(f.Table.DeletionProtectionEnabled) {
		return found()
	}
	return found(f.atTable("deletion protection is off"))
}

// span formats a duration without zero minutes and seconds, for example 24h.
func span(d time.Duration) string {
	s := d.String()
	s = strings.TrimSuffix(s, "0s")
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	if s == "" || d%time.Minute != 0 {
		return d.String()
	}
	return s
}
