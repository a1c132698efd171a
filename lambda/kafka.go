package lambda

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

const kafkaKind = "a Kafka event"

// Kafka takes the records of topics (in Amazon MSK or your own cluster), in order
// within each partition. Don't change Kafka: change a copy, as [Batch] shows.
//
// The event source mapping must have ReportBatchItemFailures among its
// FunctionResponseTypes, which requires the mapping's provisioned mode. Without this
// setting Lambda ignores the report and continues after the failed records. If you
// can't use the setting, set the field Reply to nil in a copy. Then a failure fails the
// invocation, and Lambda delivers the whole batch again. In this case set
// MaximumRecordAgeInSeconds or MaximumRetryAttempts so that Lambda stops delivering a
// batch before [idem.Options.Retention] is over.
//
// A partition stops at its first failure. Lambda delivers the failed record and all
// later ones of the partition again; the other partitions continue. By default Lambda
// tries for ever, and the partition waits all that time. If the mapping has a failure
// destination, the default is 10 tries. So set a failure destination and
// MaximumRetryAttempts.
//
// The key of a record is the text of its header [KeyAttribute]. The header's name may
// be in upper or lower case. Without this header the key is made of the record's topic,
// partition, offset and timestamp. (A topic that is deleted and made again repeats the
// offsets, but not the timestamps.) If a producer sends a message again, or through a
// retry topic, the message becomes a new record. Without the header, the new record has
// another key; see [Batch.WithKey].
//
// The scope is the cluster, the topic and the function. In the scope, a cluster of your
// own is named by its bootstrap servers. If they can change, set a lasting name by
// [Batch.WithScope]. Records with the same idempotency key must have the same Kafka
// key, value and headers, except the headers of tracing. The field Keeps has Kafka's
// default, 7 days. In your copy, set it to your topic's retention.
//
// The whole event is refused ([ErrEvent]) if a record's topic and partition differ from
// those under which the event lists the record, or if a value is not base64.
var Kafka = Batch[events.KafkaEvent, KafkaRecord, kafkaResponse]{
	Records: kafkaRecords,
	ID:      func(r KafkaRecord) string { return kafkaID(kafkaPartition(&r.KafkaRecord), r.Offset) },
	Key:     kafkaKey,
	Request: kafkaRequest,
	shared:  true,
	Keeps:   keepsKafka,
	Group:   func(r KafkaRecord) string { return kafkaPartition(&r.KafkaRecord) },
	Reply:   kafkaReply,
}

// keepsKafka is the default of log.retention.hours, 168; a topic may keep its records for
// longer, or for ever.
// https://kafka.apache.org/documentation/#brokerconfigs_log.retention.hours
const keepsKafka = 7 * day

// KafkaRecord is a record of [Kafka].
type KafkaRecord struct {
	events.KafkaRecord        // Key and Value are in base64
	Cluster            string // the cluster's ARN, or its bootstrap servers, sorted
	Data               []byte // the decoded Value; empty for a record without a value (a tombstone)
}

// kafkaResponse is the report on failed records. aws-lambda-go 1.55 has no type for it.
// https://docs.aws.amazon.com/lambda/latest/dg/kafka-retry-configurations.html
type kafkaResponse struct {
	BatchItemFailures []kafkaFailure `json:"batchItemFailures"`
}

type kafkaFailure struct {
	ItemIdentifier kafkaPlace `json:"itemIdentifier"`
}

// kafkaPlace is the position from which Lambda continues a partition. If the position is not in
// the event, Lambda repeats the whole event.
type kafkaPlace struct {
	Partition string `json:"partition"` // "topic-0", as the event spells it
	Offset    int64  `json:"offset"`
}

func kafkaRecords(ev events.KafkaEvent) ([]KafkaRecord, error) {
	cluster := cmp.Or(ev.EventSourceARN, sortedServers(ev.BootstrapServers))
	switch {
	case ev.EventSource != "aws:kafka" && ev.EventSource != "SelfManagedKafka":
		return nil, notA(kafkaKind, fmt.Sprintf("it is of %.40q", ev.EventSource))
	case cluster == "":
		return nil, notA(kafkaKind, "it doesn't name its cluster")
	}
	var all []KafkaRecord
	for _, partition := range slices.Sorted(maps.Keys(ev.Records)) {
		for i, r := range ev.Records[partition] {
			if r.Topic == "" || kafkaPartition(&r) != partition {
				return nil, notA(kafkaKind, fmt.Sprintf("record %d of %.300q is of topic %.300q, partition %d", i, partition, r.Topic, r.Partition))
			}
			data, err := base64.StdEncoding.DecodeString(r.Value)
			if err != nil { // Lambda encodes each value, so the event isn't from Lambda
				return nil, notA(kafkaKind, fmt.Sprintf("the value of record %d of %.300q is not base64", i, partition))
			}
			all = append(all, KafkaRecord{KafkaRecord: r, Cluster: cluster, Data: data})
		}
	}
	if len(all) == 0 {
		return nil, notA(kafkaKind, "it has no records")
	}
	return all, nil
}

// sortedServers returns a cluster's servers sorted, because events name them in any
// order.
func sortedServers(servers string) string {
	list := strings.Split(servers, ",")
	slices.Sort(list)
	return strings.Join(list, ",")
}

func kafkaPartition(r *events.KafkaRecord) string {
	return r.Topic + "-" + strconv.FormatInt(r.Partition, 10)
}

func kafkaID(partition string, offset int64) string {
	return partition + ":" + strconv.FormatInt(offset, 10)
}

func kafkaKey(r KafkaRecord) (string, error) {
	if key, keyed, err := attributeKey(kafkaHeaders(&r)); keyed {
		return key, err
	}
	return textKey(kafkaID(kafkaPartition(&r.KafkaRecord), r.Offset) + "@" + strconv.FormatInt(r.Timestamp.UnixMilli(), 10)), nil
}

// kafkaHeaders yields the headers of a record in their order, including several with the same name.
func kafkaHeaders(r *KafkaRecord) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, header := range r.Headers {
			for _, name := range slices.Sorted(maps.Keys(header)) {
				if !yield(name, string(header[name])) {
					return
				}
			}
		}
	}
}

func kafkaRequest(ctx context.Context, r KafkaRecord) (idem.Request, error) {
	in := inner{said: url.Values{"@key": {r.Key}}}
	for name, value := range kafkaHeaders(&r) {
		in.traces(name, value)
		if identifies(name) {
			if !utf8.ValidString(value) {
				value = "base64:" + base64.StdEncoding.EncodeToString([]byte(value))
			}
			in.said.Add("header "+name, value)
		}
	}
	return idem.Request{
		Source: consumerScope(ctx, r.Cluster+"/"+r.Topic),
		Route:  "Kafka " + r.Topic,
		Header: jsonHeader(),
		Query:  in.said.Encode(),
		Body:   r.Data,
		Trace:  in.trace,
	}, nil
}

// kafkaReply names the first failure of each partition, because Lambda continues from
// there.
func kafkaReply(failed []string) kafkaResponse {
	re := kafkaResponse{BatchItemFailures: []kafkaFailure{}}
	last := ""
	for _, id := range failed { // kafkaRecords orders the ids by partition
		at := strings.LastIndexByte(id, ':') + 1
		partition := id[:max(at-1, 0)] // "" if a copy of Kafka has ids without a colon; then Lambda repeats the event
		offset, _ := strconv.ParseInt(id[at:], 10, 64)
		if partition == "" || partition != last {
			re.BatchItemFailures = append(re.BatchItemFailures, kafkaFailure{kafkaPlace{partition, offset}})
		}
		last = partition
	}
	return re
}
