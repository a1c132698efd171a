package stream

import (
	"github.com/aws/aws-lambda-go/events"
)

type batch struct {
	n    int
	at   func(i int) (*events.DynamoDBEventRecord, error) // the record i
	size func(i int) int                                  // the size of record i in bytes; 0 if it is decoded already
}

func batchOf(ev events.DynamoDBEvent) batch {
	return batch{
		n: len(ev.Records), at: func(i int) (*events.DynamoDBEventRecord, error) { return &ev.Records[i], nil }, size: func(int) int { return 0 },
	}
}

// mostAtOnce is how many bytes of a batch are decoded together. If an event of 6 MB were decoded as
// a whole, its images would take 100 MB.
const mostAtOnce = 1 << 20

// part returns the index after the last record of a part. The part begins with record from, and is
// decoded as a whole.
func (b batch) part(from int) (to int) {
	size := b.size(from)
	for to = from + 1; to < b.n; to++ {
		if size += b.size(to); size > mostAtOnce {
			break
		}
	}
	return to
}
